//! What `ARCHITECTURE.md` and the other documents promise about the sources, looked up in the sources.

use std::{collections::BTreeSet, fs, path::PathBuf, process::Command};

use api::group::GroupTable;
use cli::crds::parse;
use serde_json::Value;

/// Crates that would bring a second crypto, TLS or YAML library; `deny.toml` says why.
const BANNED: [&str; 4] = ["native-tls", "openssl", "ring", "serde_yaml"];

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// The files of the repository, by path from its root, that end in `ending`.
fn files(ending: &str) -> Vec<String> {
    let arguments = ["ls-files", "--cached", "--others", "--exclude-standard"];
    let output = Command::new("git")
        .args(arguments)
        .current_dir(root())
        .output();
    let output = output.expect("git runs");
    let text = String::from_utf8(output.stdout).expect("paths are UTF-8");
    let files: Vec<_> = text
        .lines()
        .filter(|path| path.ends_with(ending) && root().join(path).is_file())
        .map(str::to_owned)
        .collect();
    assert!(!files.is_empty(), "no file ends in {ending}");
    files
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).expect(path)
}

/// The text between backticks.
fn code(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

#[test]
fn invariants_name_tests_that_exist() {
    let sources: String = files(".rs").iter().map(|path| read(path)).collect();
    let text = read("ARCHITECTURE.md");
    let (_, invariants) = text
        .split_once("## Invariants")
        .expect("there are invariants");
    let rows = invariants.lines().filter(|line| line.starts_with('|'));
    let held_by = rows.filter_map(|line| line.split('|').nth(2));
    // Test names have underscores and nothing else that is not a letter or digit.
    let tests: BTreeSet<_> = held_by
        .flat_map(code)
        .filter(|name| {
            name.contains('_') && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        })
        .collect();
    assert!(tests.len() > 10, "{tests:?}");
    for test in tests {
        assert!(
            sources.contains(&format!("fn {test}(")),
            "there is no test {test}"
        );
    }
}

#[test]
fn links_and_paths_in_documents_exist() {
    for document in files(".md") {
        // What is set as code is no link, however it looks: regular expressions have brackets of both kinds.
        let text: String = read(&document).split('`').step_by(2).collect();
        let directory = root()
            .join(&document)
            .parent()
            .expect("files have a directory")
            .to_owned();
        let links = text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next());
        for link in links.filter(|link| !link.contains("://") && !link.starts_with('#')) {
            let path = link.split('#').next().unwrap_or_default();
            assert!(
                directory.join(path).exists(),
                "{document}: {link} leads nowhere"
            );
        }
    }
}

/// Whether a definition says anything about its objects: some that tests make up do not.
fn has_schema(definition: &Value) -> bool {
    let versions = definition["spec"]["versions"].as_array();
    let nothing = serde_json::json!({ "type": "object" });
    !versions.is_some_and(|versions| {
        versions
            .iter()
            .all(|version| version["schema"]["openAPIV3Schema"] == nothing)
    })
}

#[test]
fn no_crd_of_cluster_api_is_committed() {
    let table = GroupTable::default();
    for path in files(".yaml") {
        // Golden and broken files of tests need not be YAML that kubectl takes.
        let Ok(documents) = parse(&path, &read(&path)) else {
            continue;
        };
        for document in documents
            .iter()
            .filter(|document| document.value["kind"] == "CustomResourceDefinition")
            .filter(|document| has_schema(&document.value))
        {
            let group = document.value["spec"]["group"].as_str().unwrap_or_default();
            assert!(
                table.find(group.as_bytes()).is_none(),
                "{}: {group}",
                document.origin
            );
        }
    }
}

#[test]
fn banned_crates_are_not_in_the_graph() {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--workspace",
            "--edges",
            "normal,build,dev",
            "--prefix",
            "none",
            "--format",
            "{p}",
        ])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let crates: BTreeSet<_> = text
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert!(
        crates.contains("rustls"),
        "cargo tree says: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    for banned in BANNED {
        assert!(
            !crates.contains(banned),
            "{banned} is in the graph: cargo tree --invert {banned}"
        );
    }
    let deny = read("deny.toml");
    for banned in BANNED {
        assert!(
            deny.contains(&format!("crate = \"{banned}\"")),
            "deny.toml does not ban {banned}"
        );
    }
}
