//! Which crate may depend on which: the arrows of ARCHITECTURE.md.
//!
//! Two lists: what each crate may depend on within the workspace, and which crates do no I/O at all.

use std::collections::BTreeSet;

use serde_json::Value;

/// What a crate that ships may depend on within the workspace.
const ALLOWED: [(&str, &[&str]); 17] = [
    ("api", &[]),
    ("support", &["api"]),
    ("capi-translate", &["api"]),
    ("conversion-certificates", &[]),
    ("capi-proxy", &["api", "capi-translate", "support"]),
    ("payload", &["api", "support"]),
    // What becomes of each object: pure.
    ("migration", &["api", "capi-translate"]),
    (
        "migration-executor",
        &["api", "capi-translate", "migration", "support"],
    ),
    // Who reconciles a hosted cluster: pure.
    ("ownership", &["api"]),
    ("ownership-reader", &["api", "ownership"]),
    ("control-plane-component", &["api", "payload", "support"]),
    (
        "control-plane-operator",
        &["api", "control-plane-component", "payload", "support"],
    ),
    (
        "hypershift-operator",
        &[
            "api",
            "control-plane-component",
            "conversion-certificates",
            "migration",
            "migration-executor",
            "ownership",
            "ownership-reader",
            "payload",
            "support",
        ],
    ),
    // The command line installs operators and depends on none.
    (
        "cli",
        &[
            "api",
            "control-plane-component",
            "conversion-certificates",
            "migration",
            "migration-executor",
            "ownership",
            "ownership-reader",
            "payload",
            "support",
        ],
    ),
    // It ships nothing, but it is the smallest that can be made of `api`.
    ("codegen", &["api"]),
    // It ships nothing, but tests of crates that ship use it.
    ("invariants", &[]),
    ("fake-clouds", &["support"]),
];
/// Crates that ship nothing: only they may depend on each other, and they may depend on anything.
const TOOLS: [&str; 7] = [
    "agent-stand-in",
    "bench",
    "e2e",
    "load",
    "pod-tools",
    "testbed",
    "xtask",
];
/// Crates without I/O of their own: nothing in their graph may be an async runtime or a client.
pub(super) const PURE: [&str; 5] = [
    "capi-translate",
    "conversion-certificates",
    "invariants",
    "migration",
    "ownership",
];
const RUNTIMES: [&str; 12] = [
    "async-std",
    "futures-util",
    "h2",
    "hyper",
    "hyper-util",
    "kube",
    "kube-client",
    "mio",
    "reqwest",
    "socket2",
    "tokio",
    "tower",
];

/// A dependency of one crate of the workspace on another, which ships.
type Arrow = (String, String);

/// The dependencies that are not allowed.
pub(super) fn findings(metadata: &Value) -> Vec<String> {
    arrows(metadata)
        .into_iter()
        .filter(|(from, to)| !may(from, to))
        .map(|(from, to)| {
            format!("{from}/Cargo.toml: {from} may not depend on {to} (xtask/src/tidy/arrows.rs has the rules)")
        })
        .collect()
}

/// Runtimes and clients in the graph of a crate of [`PURE`]: a line is a crate as `cargo tree` writes it.
pub(super) fn runtimes(of: &str, graph: &str) -> Vec<String> {
    let names = graph.lines().filter_map(|line| line.split(' ').next());
    let names: BTreeSet<&str> = names.filter(|name| RUNTIMES.contains(name)).collect();
    names
        .into_iter()
        .map(|name| {
            format!(
                "{of}/Cargo.toml: {of} does no I/O and may not depend on {name} (cargo tree -p {of} --invert {name})"
            )
        })
        .collect()
}

/// The dependencies between crates of the workspace. Tests may use more than what ships does.
fn arrows(metadata: &Value) -> Vec<Arrow> {
    let packages = list(&metadata["packages"]);
    let ours: Vec<_> = packages
        .iter()
        .map(|package| text(&package["name"]))
        .collect();
    let mut arrows = Vec::new();
    for package in packages {
        for dependency in list(&package["dependencies"]) {
            let to = text(&dependency["name"]);
            if dependency["kind"] != "dev" && ours.contains(&to) {
                arrows.push((text(&package["name"]).to_owned(), to.to_owned()));
            }
        }
    }
    arrows
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A crate that is in no list may depend on nothing: a new one has to be entered.
fn may(from: &str, to: &str) -> bool {
    if TOOLS.contains(&from) {
        return true;
    }
    let allowed = ALLOWED.iter().find(|(name, _)| *name == from);
    allowed.is_some_and(|(_, allowed)| allowed.contains(&to))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arrows_point_from_crates_to_their_dependencies() {
        for (from, to, expected) in [
            ("capi-proxy", "api", true),
            ("capi-proxy", "migration", false),
            ("api", "support", false),
            ("control-plane-operator", "hypershift-operator", false),
            ("hypershift-operator", "control-plane-operator", false),
            ("hypershift-operator", "migration", true),
            ("migration", "capi-proxy", false),
            ("cli", "control-plane-operator", false),
            ("cli", "hypershift-operator", false),
            ("hypershift-operator", "ownership", true),
            ("ownership", "ownership-reader", false),
            ("cli", "testbed", false),
            ("migration", "migration-executor", false),
            ("migration", "support", false),
            ("e2e", "cli", true),
            ("new", "api", false),
        ] {
            assert_eq!(may(from, to), expected, "{from} -> {to}");
        }
    }

    fn crates(arrows: &[(&str, &str)]) -> Value {
        let name = |name: &str| json!({ "name": name, "dependencies": [] });
        let mut packages: Vec<_> = arrows.iter().map(|(_, to)| name(to)).collect();
        packages.extend(arrows.iter().map(
            |(from, to)| json!({ "name": from, "dependencies": [{ "name": to, "kind": null }] }),
        ));
        json!({ "packages": packages })
    }

    #[test]
    fn a_forbidden_arrow_is_found() {
        let allowed = ("cli", "ownership");
        assert_eq!(findings(&crates(&[allowed])), [""; 0]);
        for (from, to) in [
            ("payload", "cli"),
            ("cli", "hypershift-operator"),
            ("ownership", "support"),
        ] {
            let found = findings(&crates(&[allowed, (from, to)]));
            let [line] = found.as_slice() else {
                panic!("{found:?}")
            };
            assert!(
                line.contains(&format!("{from} may not depend on {to}")),
                "{line}"
            );
        }
    }

    #[test]
    fn crates_without_io_have_no_runtime_in_their_graph() {
        let graph = "capi-translate v0.0.0 (/w)\nmemchr v2.8.3\ntokio v1.54.1\ntokio v1.54.1 (*)\n";
        let found = runtimes("capi-translate", graph);
        assert!(found.len() == 1 && found[0].contains("tokio"), "{found:?}");
        assert_eq!(runtimes("capi-translate", "memchr v2.8.3"), [""; 0]);
    }
}
