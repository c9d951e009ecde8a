//! Which crate may depend on which: the arrows of ARCHITECTURE.md.
//!
//! Three lists: what each crate may depend on within the workspace, which crates do no I/O at all, and what is not true
//! yet. The last must shrink: an entry that is not needed any more is a finding, too.

use std::collections::BTreeSet;

use serde_json::Value;

/// What a crate that ships may depend on within the workspace.
const ALLOWED: [(&str, &[&str]); 14] = [
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
    ("ownership", &["api"]),
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
            "payload",
            "support",
        ],
    ),
    // It ships nothing, but it is the smallest that can be made of `api`.
    ("codegen", &["api"]),
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
pub(super) const PURE: [&str; 3] = ["capi-translate", "conversion-certificates", "migration"];
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
/// Arrows that are drawn and have to go.
const NOT_YET: [(&str, &str); 1] = [("cli", "hypershift-operator")];
/// Crates of [`PURE`] that are not yet.
const NOT_YET_PURE: [&str; 0] = [];

/// A dependency of one crate of the workspace on another, which ships.
type Arrow = (String, String);

/// The arrows that are drawn and may not be, and entries of [`NOT_YET`] that are not needed any more.
pub(super) fn findings(metadata: &Value) -> Vec<String> {
    let arrows = arrows(metadata);
    let is_drawn = |from: &str, to: &str| arrows.iter().any(|(a, b)| a == from && b == to);
    let forbidden = arrows
        .iter()
        .filter(|(from, to)| !may(from, to) && !NOT_YET.contains(&(from.as_str(), to.as_str())))
        .map(|(from, to)| {
            format!("{from}/Cargo.toml: {from} may not depend on {to} (xtask/src/tidy/arrows.rs has the rules)")
        });
    let done = NOT_YET
        .into_iter()
        .filter(|(from, to)| !is_drawn(from, to))
        .map(|(from, to)| {
            format!("xtask/src/tidy/arrows.rs: {from} does not depend on {to} any more: remove it from NOT_YET")
        });
    forbidden.chain(done).collect()
}

/// Runtimes and clients in the graph of a crate of [`PURE`]: a line is a crate as `cargo tree` writes it.
pub(super) fn runtimes(of: &str, graph: &str) -> Vec<String> {
    let names = graph.lines().filter_map(|line| line.split(' ').next());
    let names: BTreeSet<&str> = names.filter(|name| RUNTIMES.contains(name)).collect();
    match (NOT_YET_PURE.contains(&of), names.is_empty()) {
        (true, false) => Vec::new(),
        (true, true) => vec![format!(
            "xtask/src/tidy/arrows.rs: {of} has no runtime any more: remove it from NOT_YET_PURE"
        )],
        (false, _) => names
            .into_iter()
            .map(|name| {
                format!(
                    "{of}/Cargo.toml: {of} does no I/O and may not depend on {name} (cargo tree -p {of} --invert {name})"
                )
            })
            .collect(),
    }
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
    fn arrows_point_from_what_ships_to_what_it_stands_on() {
        for (from, to, expected) in [
            ("capi-proxy", "api", true),
            ("capi-proxy", "migration", false),
            ("api", "support", false),
            ("control-plane-operator", "hypershift-operator", false),
            ("hypershift-operator", "control-plane-operator", false),
            ("hypershift-operator", "migration", true),
            ("migration", "capi-proxy", false),
            ("cli", "control-plane-operator", false),
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
    fn arrows_are_found_and_the_list_of_exceptions_shrinks() {
        assert_eq!(findings(&crates(&NOT_YET)), [""; 0]);
        for gone in NOT_YET {
            let rest: Vec<_> = NOT_YET.into_iter().filter(|one| *one != gone).collect();
            let found = findings(&crates(&rest));
            let [line] = found.as_slice() else {
                panic!("{found:?}")
            };
            assert!(line.contains(gone.1) && line.contains("NOT_YET"), "{line}");
        }
        let mut more = NOT_YET.to_vec();
        more.push(("payload", "cli"));
        let found = findings(&crates(&more));
        assert!(
            found.len() == 1 && found[0].contains("payload may not"),
            "{found:?}"
        );
    }

    #[test]
    fn crates_without_io_have_no_runtime_in_their_graph() {
        let graph = "capi-translate v0.0.0 (/w)\nmemchr v2.8.3\ntokio v1.54.1\ntokio v1.54.1 (*)\n";
        let found = runtimes("capi-translate", graph);
        assert!(found.len() == 1 && found[0].contains("tokio"), "{found:?}");
        assert_eq!(runtimes("capi-translate", "memchr v2.8.3"), [""; 0]);
        for crate_ in NOT_YET_PURE {
            assert_eq!(runtimes(crate_, graph), [""; 0]);
            assert!(runtimes(crate_, "memchr v2.8.3")[0].contains("NOT_YET_PURE"));
        }
    }
}
