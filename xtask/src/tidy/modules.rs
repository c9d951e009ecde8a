//! Which module of hypershift-operator may import which: ARCHITECTURE.md describes the layers.

use anyhow::Result;

use crate::sources;

/// Where the modules are.
const ROOT: &str = "hypershift-operator/src/";
/// The modules, from the lowest layer to the highest: each may import modules of lower layers only. Tests may import all.
const LAYERS: [&[&str]; 12] = [
    &[
        "args",
        "canonical",
        "capi",
        "cluster_ref",
        "conversion",
        "error",
        "karpenter_crds",
        "kinds",
        "metrics",
        "names",
        "pause",
        "watches",
    ],
    &["desired", "program", "supported_versions"],
    &[
        "cluster_states",
        "config",
        "control_plane_namespace",
        "in_flight",
        "owner_condition",
        "recover_etcd",
        "sharedingress_config_generator",
    ],
    &["cache", "facts"],
    &["management", "platform"],
    &["context"],
    &[
        "evaluation",
        "events",
        "fleet_metrics",
        "handover",
        "legacy",
    ],
    &["etcd_backup", "private_link"],
    &["hosted_cluster", "node_pool"],
    &["control", "karpenter_operator", "migration", "startup"],
    &["resync"],
    &["run"],
];

/// The imports that are not allowed.
pub(super) fn findings(files: &[String]) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    let checked = |file: &&String| sources::is_rust(file) && !is_test(file);
    for file in files.iter().filter(checked) {
        let Some(module) = module(file) else {
            continue;
        };
        let text = sources::read(file)?;
        let refused = imports(without_tests(&text))
            .into_iter()
            .filter(|(_, to)| !may(module, to));
        findings.extend(refused.map(|(line, to)| {
            format!(
                "{file}:{line}: {module} may not import {to} (xtask/src/tidy/modules.rs has the layers)"
            )
        }));
    }
    Ok(findings)
}

fn is_test(file: &str) -> bool {
    file.ends_with("/tests.rs") || file.contains("/tests/")
}

/// The text up to where the file's tests begin.
fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {")
        .next()
        .unwrap_or_default()
}

/// The module that a file belongs to. The root of the crate, which may import all, belongs to none.
fn module(file: &str) -> Option<&str> {
    let path = file.strip_prefix(ROOT)?;
    let module = path.split('/').next()?;
    let module = module.strip_suffix(".rs").unwrap_or(module);
    (module != "lib" && module != "main").then_some(module)
}

/// Line numbers from one, and the modules that a file imports by a path from the root of the crate.
fn imports(text: &str) -> Vec<(usize, String)> {
    let mut imports = Vec::new();
    for (at, path) in text.match_indices("crate::") {
        let before = &text[..at];
        let line = before.rsplit('\n').next().unwrap_or_default();
        let is_part = line.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
        if is_part || line.trim_start().starts_with("//") {
            continue;
        }
        let number = before.matches('\n').count() + 1;
        let names = roots(&text[at + path.len()..]);
        imports.extend(names.into_iter().map(|name| (number, name)));
    }
    imports
}

/// The first name of a path, or of each path of a group.
fn roots(path: &str) -> Vec<String> {
    let Some(group) = path.strip_prefix('{') else {
        return vec![name(path)];
    };
    let mut depth = 0_usize;
    let end = group.find(|c| {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => return true,
            '}' => depth -= 1,
            _ => {}
        }
        false
    });
    let mut names = Vec::new();
    let mut depth = 0_usize;
    let mut is_first = true;
    for (at, c) in group[..end.unwrap_or(group.len())].char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => is_first = true,
            c if is_first && !c.is_whitespace() => {
                names.push(name(&group[at..]));
                is_first = false;
            }
            _ => {}
        }
    }
    names
}

fn name(path: &str) -> String {
    path.chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect()
}

/// Whether a module may import another. One that is in no layer may import nothing: a new one has to be entered.
fn may(from: &str, to: &str) -> bool {
    let layer = |name: &str| LAYERS.iter().position(|layer| layer.contains(&name));
    from == to
        || layer(from)
            .zip(layer(to))
            .is_some_and(|(from, to)| to < from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_import_lower_layers_only() {
        for (from, to, expected) in [
            ("run", "migration", true),
            ("hosted_cluster", "platform", true),
            ("hosted_cluster", "hosted_cluster", true),
            ("platform", "facts", true),
            ("platform", "hosted_cluster", false),
            ("platform", "node_pool", false),
            ("node_pool", "hosted_cluster", false),
            ("hosted_cluster", "migration", false),
            ("context", "migration", false),
            ("cache", "context", false),
            ("new", "error", false),
        ] {
            assert_eq!(may(from, to), expected, "{from} -> {to}");
        }
    }

    #[test]
    fn tests_may_import_all() {
        for (file, expected) in [
            (
                "hypershift-operator/src/platform/azure/machines/tests.rs",
                true,
            ),
            (
                "hypershift-operator/src/hosted_cluster/validate/tests/azure.rs",
                true,
            ),
            ("hypershift-operator/src/platform/azure/machines.rs", false),
        ] {
            assert_eq!(is_test(file), expected, "{file}");
        }
        let text = "use crate::facts;\n#[cfg(test)]\nmod tests;\nuse crate::names;\n\n#[cfg(test)]\nmod tests {\nuse crate::run;\n}\n";
        let found = imports(without_tests(text));
        let found: Vec<_> = found.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(found, ["facts", "names"]);
    }

    #[test]
    fn imports_are_found_in_paths_and_groups() {
        let text = "use crate::cache::{self, Look};\n// crate::comment\n\
            pub(crate) use crate::{context::Context, facts, names::{A, B}};\nlet x = crate::error::Error;\n";
        let found = imports(text);
        let found: Vec<_> = found
            .iter()
            .map(|(line, name)| (*line, name.as_str()))
            .collect();
        assert_eq!(
            found,
            [
                (1, "cache"),
                (3, "context"),
                (3, "facts"),
                (3, "names"),
                (4, "error")
            ]
        );
    }

    #[test]
    fn files_belong_to_top_level_modules() {
        for (file, expected) in [
            ("hypershift-operator/src/context.rs", Some("context")),
            (
                "hypershift-operator/src/platform/aws/machines.rs",
                Some("platform"),
            ),
            ("hypershift-operator/src/lib.rs", None),
            ("cli/src/dump.rs", None),
        ] {
            assert_eq!(module(file), expected, "{file}");
        }
    }
}
