//! `statements.txt` lists how components follow their input, and the test that verifies each statement. The list is checked:
//! a statement whose test or row has gone fails, and so does a component or a section without a statement.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use control_plane_operator::components;

use crate::input;
use crate::rows::TABLES;

const LIST: &str = include_str!("statements.txt");
/// Statements about several components.
const SEVERAL: &str = "all";
/// The row of a statement whose test has no table, or whose whole table verifies it.
const NO_ROW: &str = "-";
/// The sections of the description of components, by number. 3.23 only refers to 6.6, 3.24 is about Karpenter, which the
/// API does not offer, and 7 repeats others for the inputs of its fixtures.
const SECTIONS: &[(&str, &str)] = &[
    ("1.1", "TLS profile"),
    ("1.2", "proxy of the operator"),
    ("1.3", "bypass of the guest's proxy"),
    ("1.4", "konnectivity sidecars"),
    ("1.5", "token minters"),
    ("1.6", "availability prober"),
    ("1.7", "Azure"),
    ("1.8", "access, capabilities, feature gates"),
    ("1.9", "audit"),
    ("1.10", "what rolls out a component"),
    ("2", "replicas, dependencies, predicates"),
    ("3.1", "cloud controller managers"),
    ("3.2", "aws-node-termination-handler"),
    ("3.3", "kubevirt-csi-controller"),
    ("3.4", "cluster-policy-controller"),
    ("3.5", "openshift-controller-manager"),
    ("3.6", "openshift-route-controller-manager"),
    ("3.7", "openshift-apiserver"),
    ("3.8", "openshift-oauth-apiserver"),
    ("3.9", "cluster-network-operator"),
    ("3.10", "dns-operator"),
    ("3.11", "ingress-operator"),
    ("3.12", "cluster-storage-operator"),
    ("3.13", "csi-snapshot-controller-operator"),
    ("3.14", "cluster-image-registry-operator"),
    ("3.15", "cluster-node-tuning-operator"),
    ("3.16", "cloud-credential-operator"),
    ("3.17", "kube-storage-version-migrator"),
    ("3.18", "control-plane-pki-operator"),
    ("3.19", "OLM operators"),
    ("3.20", "olm-collect-profiles"),
    ("3.21", "endpoint-resolver"),
    ("3.22", "metrics-proxy"),
    ("3.25", "monitors"),
    ("4.1", "configuration of the OAuth server"),
    ("4.2", "pods of the OAuth server"),
    ("4.3", "identity providers"),
    ("4.4", "kubeadmin"),
    ("5.4", "catalogs"),
    ("6.1", "kube-apiserver"),
    ("6.2", "encryption"),
    ("6.3", "controller manager and scheduler"),
    ("6.4", "etcd"),
    ("6.5", "ignition"),
    ("6.6", "konnectivity-agent"),
    ("6.7", "cluster-version-operator"),
    ("6.8", "hosted-cluster-config-operator"),
    ("6.9", "machines"),
    ("6.10", "router, featuregate-generator"),
    ("8", "images"),
];

/// A line of the list.
#[derive(Debug)]
struct Statement<'a> {
    number: &'a str,
    section: &'a str,
    component: &'a str,
    text: &'a str,
    /// The file of the test, from the crate's directory.
    file: &'a str,
    test: &'a str,
    /// A literal in that test: the name of its row, or a value that only it has.
    row: &'a str,
}

fn statements() -> Vec<Statement<'static>> {
    let lines = LIST.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(statement).collect()
}

fn statement(line: &str) -> Statement<'_> {
    let fields: Vec<_> = line.split(" | ").map(str::trim).collect();
    assert_eq!(fields.len(), 7, "{line}: seven fields are expected");
    Statement {
        number: fields[0],
        section: fields[1],
        component: fields[2],
        text: fields[3],
        file: fields[4],
        test: fields[5],
        row: fields[6],
    }
}

/// The body of a test in a source file.
fn body<'a>(source: &'a str, test: &str) -> Option<&'a str> {
    let header = format!("fn {test}() {{\n");
    let start = source.find(&header)?;
    let line = source[..start].rfind('\n').map_or(0, |end| end + 1);
    let indent: String = source[line..].chars().take_while(|it| *it == ' ').collect();
    let rest = &source[start + header.len()..];
    let end = rest.find(&format!("\n{indent}}}"))?;
    let is_test = source[..line].trim_end().ends_with(']');
    is_test.then(|| &rest[..end])
}

/// What is wrong with a statement.
fn problem(statement: &Statement<'_>, source: &str) -> Option<String> {
    let Statement {
        number, component, ..
    } = statement;
    let known = components::all().iter().any(|it| it.name == *component);
    if !known && *component != SEVERAL {
        return Some(format!("{number}: no component is named {component}"));
    }
    if !SECTIONS.iter().any(|(id, _)| *id == statement.section) {
        return Some(format!("{number}: no section {}", statement.section));
    }
    let Statement {
        file, test, row, ..
    } = statement;
    let Some(body) = body(source, test) else {
        return Some(format!("{number}: {file} has no test {test}"));
    };
    let is_verified = *row == NO_ROW || body.contains(&format!("\"{row}\""));
    (!is_verified).then(|| format!("{number}: {test} has no row {row:?}"))
}

/// Check T25.
#[test]
fn every_statement_about_inputs_has_a_test() {
    let mut sources = BTreeMap::new();
    let mut problems = Vec::new();
    for statement in statements() {
        let path = input::root().join(statement.file);
        let source = sources
            .entry(statement.file)
            .or_insert_with(|| fs::read_to_string(path).unwrap_or_default());
        problems.extend(problem(&statement, source));
    }
    assert!(problems.is_empty(), "{problems:#?}");
}

#[test]
fn statements_are_numbered_and_differ() {
    let mut seen = BTreeSet::new();
    let all = statements();
    println!("{} statements", all.len());
    for (index, statement) in all.iter().enumerate() {
        assert_eq!(statement.number, (index + 1).to_string(), "{statement:?}");
        let same = (statement.section, statement.component, statement.text);
        assert!(seen.insert(same), "{statement:?} is there twice");
    }
}

#[test]
fn every_component_and_section_has_statements() {
    let all = statements();
    let named: BTreeSet<_> = all.iter().map(|it| it.component).collect();
    let missing = components::all().iter().map(|it| it.name);
    let missing: Vec<_> = missing.filter(|name| !named.contains(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let covered: BTreeSet<_> = all.iter().map(|it| it.section).collect();
    let missing = SECTIONS.iter().filter(|(id, _)| !covered.contains(id));
    let missing: Vec<_> = missing.collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// A table that no statement names verifies nothing that is listed.
#[test]
fn every_table_has_a_statement() {
    let tests: BTreeSet<_> = statements().iter().map(|it| it.test).collect();
    let tables = TABLES.iter().map(|(path, _)| *path);
    let names = tables.filter_map(|path| path.rsplit("::").next());
    let missing: Vec<_> = names.filter(|name| !tests.contains(name.trim())).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn statements_without_a_test_are_reported() {
    let source = "#[test]\nfn a_test() {\n    \"row\"\n}\n\nfn helper() {\n    \"line\"\n}\n";
    for (line, expected) in [
        ("1 | 2 | etcd | text | a.rs | a_test | row", None),
        ("1 | 2 | all | text | a.rs | a_test | -", None),
        (
            "1 | 2 | etcd | text | a.rs | another | row",
            Some("a.rs has no test another"),
        ),
        (
            "1 | 2 | etcd | text | a.rs | helper | line",
            Some("a.rs has no test helper"),
        ),
        (
            "1 | 2 | etcd | text | a.rs | a_test | line",
            Some("a_test has no row \"line\""),
        ),
        (
            "1 | 2 | etcd | text | a.rs | a_test | ro",
            Some("a_test has no row \"ro\""),
        ),
        (
            "1 | 2 | other | text | a.rs | a_test | row",
            Some("no component is named other"),
        ),
        (
            "1 | 0 | etcd | text | a.rs | a_test | row",
            Some("no section 0"),
        ),
    ] {
        let found = problem(&statement(line), source);
        assert_eq!(found, expected.map(|it| format!("1: {it}")), "{line}");
    }
}
