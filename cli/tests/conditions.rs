//! docs/clusters.md lists every condition of the API with the component that sets it, or why it is not set; the
//! sources agree.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use api::conditions::{ClusterCondition, PoolCondition};

const PAGE: &str = include_str!("../../docs/clusters.md");
/// Components that set conditions, and the sources in which they do.
const WHERE: [(&str, &str); 3] = [
    ("hypershift-operator", "hypershift-operator/src"),
    (
        "control-plane-operator",
        "control-plane-operator/src/hosted_control_plane",
    ),
    (
        "hosted-cluster-config-operator",
        "control-plane-operator/src/hosted_cluster_config",
    ),
];
/// Files that name conditions without setting them: they copy, count or report conditions.
const READERS: [&str; 3] = ["status/conditions.rs", "events.rs", "fleet_metrics"];

/// The rows of the table that begins with this: condition, and who sets it.
fn table(begins: &str) -> BTreeMap<&'static str, &'static str> {
    let (_, rest) = PAGE.split_once(begins).expect("the table is there");
    let rows = rest
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with("| `"));
    rows.map(|row| {
        let mut cells = row.split('|').skip(1).map(str::trim);
        let name = cells.next().unwrap_or_default().trim_matches('`');
        let by = cells.next().unwrap_or_default();
        let why = cells.next().unwrap_or_default();
        assert!(!why.is_empty(), "{name}: no reason is given");
        (name, by)
    })
    .collect()
}

/// All Rust sources below a directory, without tests, each with its path.
fn sources(directory: &str) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    let mut directories: Vec<PathBuf> = vec![root.join(directory)];
    // A module is a file of the directory's name, too.
    let mut files = vec![root.join(format!("{directory}.rs"))];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).expect("the directory is there") {
            let path = entry.expect("it can be read").path();
            if path.is_dir() {
                directories.push(path);
            } else {
                files.push(path);
            }
        }
    }
    for path in files.into_iter().filter(|path| path.is_file()) {
        let name = path.display().to_string();
        if !name.ends_with("tests.rs") {
            let text = fs::read_to_string(&path).expect("sources are text");
            let shipped = text.split("#[cfg(test)]\nmod tests {").next();
            found.push((name, shipped.unwrap_or_default().to_owned()));
        }
    }
    found
}

/// Whether a condition is named in the sources that set it.
fn is_named(sources: &[(String, String)], set: &str, variant: &str) -> bool {
    // The control plane's operator has a shorter name for the set.
    let names = [format!("{set}::{variant}"), format!("Type::{variant}")];
    let writers = sources
        .iter()
        .filter(|(path, _)| !READERS.iter().any(|it| path.contains(it)));
    writers
        .flat_map(|(_, text)| names.iter().map(move |name| (text, name)))
        .any(|(text, name)| {
            text.match_indices(name.as_str()).any(|(at, found)| {
                let before = text[..at].chars().next_back();
                let after = text[at + found.len()..].chars().next();
                let part =
                    |it: Option<char>| it.is_some_and(|it| it.is_alphanumeric() || it == '_');
                !part(before) && !part(after)
            })
        })
}

#[test]
fn every_cluster_condition_is_set_or_documented_as_unset() {
    let table = table("| condition of a HostedCluster |");
    let names: Vec<_> = ClusterCondition::ALL.iter().map(|it| it.as_str()).collect();
    assert_eq!(table.len(), names.len());
    let places = WHERE.map(|(who, directory)| (who, sources(directory)));
    // The operator of hosted clusters sets these itself in the file that also copies.
    let own = [
        "ReconciliationActive",
        "ReconciliationSucceeded",
        "UnmanagedEtcdAvailable",
        "ClusterVersionSucceeding",
        "ValidConfiguration",
        "SupportedHostedCluster",
        "ValidReleaseImage",
        "PlatformCredentialsFound",
        "AWSEndpointServiceAvailable",
        "ValidKubeVirtInfraNetworkPolicyRBAC",
        "KubeVirtNodesLiveMigratable",
    ];
    for condition in ClusterCondition::ALL {
        let name = condition.as_str();
        let by = table
            .get(name)
            .unwrap_or_else(|| panic!("{name} is not on the page"));
        let variant = format!("{condition:?}");
        for (who, sources) in &places {
            let is_set = is_named(sources, "ClusterCondition", &variant) || own.contains(&name);
            match *by {
                "-" => assert!(
                    !is_named(sources, "ClusterCondition", &variant),
                    "{name} is said not to be set, and {who} names it"
                ),
                by if by == *who => assert!(is_set, "{name} is not set by {who}"),
                by => assert!(WHERE.iter().any(|(who, _)| *who == by), "{name}: {by}"),
            }
        }
    }
}

#[test]
fn every_pool_condition_is_set_or_documented_as_unset() {
    let table = table("| condition of a NodePool |");
    assert_eq!(table.len(), PoolCondition::ALL.len());
    let sources = sources("hypershift-operator/src");
    for condition in PoolCondition::ALL {
        let name = condition.as_str();
        let by = table
            .get(name)
            .unwrap_or_else(|| panic!("{name} is not on the page"));
        let named = is_named(&sources, "PoolCondition", &format!("{condition:?}"));
        assert_eq!(named, *by == "hypershift-operator", "{name}: {by}");
    }
}
