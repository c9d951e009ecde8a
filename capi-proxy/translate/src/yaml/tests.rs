//! Rows by hand; [`generated`] has documents by chance.

mod generated;

use super::*;
use crate::place::Shape;

fn swapped(root: Node, yaml: &str) -> Result<(String, Counts), Refusal> {
    let mut out = b"before".to_vec();
    let result = swap(&Rules::default(), root, yaml.as_bytes(), &mut out);
    let out = String::from_utf8(out.split_off(6)).unwrap();
    assert!(
        result.is_ok() || out.is_empty(),
        "a refused body leaves nothing behind"
    );
    result.map(|counts| (out, counts))
}

struct Row {
    name: &'static str,
    shape: Shape,
    standard: &'static str,
    private: &'static str,
}

/// Each row is right in both directions.
const ROWS: &[Row] = &[
    Row {
        name: "block style, with comments and odd spacing",
        shape: Shape::Plain,
        standard: "# cluster.x-k8s.io/v1beta2\napiVersion:   cluster.x-k8s.io/v1beta2   # cluster.x-k8s.io\nkind: Machine\nspec:\n    infrastructureRef:\n        apiGroup: infrastructure.cluster.x-k8s.io\n        kind: DevMachine\n",
        private: "# cluster.x-k8s.io/v1beta2\napiVersion:   cluster.hypershift.openshift.io/v1beta2   # cluster.x-k8s.io\nkind: Machine\nspec:\n    infrastructureRef:\n        apiGroup: infrastructure.cluster.hypershift.openshift.io\n        kind: DevMachine\n",
    },
    Row {
        name: "quoting styles are kept",
        shape: Shape::Plain,
        standard: "'apiVersion': 'cluster.x-k8s.io/v1beta2' \nx:\n- {\"apiGroup\":\"cluster.x-k8s.io\" , a: b}\n- [{apiGroup: cluster.x-k8s.io}]\n- ? apiGroup\n  : cluster.x-k8s.io\n",
        private: "'apiVersion': 'cluster.hypershift.openshift.io/v1beta2' \nx:\n- {\"apiGroup\":\"cluster.hypershift.openshift.io\" , a: b}\n- [{apiGroup: cluster.hypershift.openshift.io}]\n- ? apiGroup\n  : cluster.hypershift.openshift.io\n",
    },
    Row {
        name: "tags and anchors that change nothing",
        shape: Shape::Plain,
        standard: "!!map\napiVersion: !!str cluster.x-k8s.io/v1beta2\na: {apiVersion: &x ! 'cluster.x-k8s.io/v1beta2'}\nb: &y {apiVersion: !<tag:yaml.org,2002:str> \"cluster.x-k8s.io/v1beta2\"}\nc: !!seq [!!int 1]\n",
        private: "!!map\napiVersion: !!str cluster.hypershift.openshift.io/v1beta2\na: {apiVersion: &x ! 'cluster.hypershift.openshift.io/v1beta2'}\nb: &y {apiVersion: !<tag:yaml.org,2002:str> \"cluster.hypershift.openshift.io/v1beta2\"}\nc: !!seq [!!int 1]\n",
    },
    Row {
        name: "carriage returns, and characters of several bytes before a place",
        shape: Shape::Plain,
        standard: "é: \"ü\" # ñ\r\nmetadata:\r\n  annotations: {ö: ß}\r\n  ownerReferences:\r\n  - apiVersion: cluster.x-k8s.io/v1beta2\r\n",
        private: "é: \"ü\" # ñ\r\nmetadata:\r\n  annotations: {ö: ß}\r\n  ownerReferences:\r\n  - apiVersion: cluster.hypershift.openshift.io/v1beta2\r\n",
    },
    Row {
        name: "R03 labels, annotations, finalizers and block text stay",
        shape: Shape::Data,
        standard: "---\nmetadata:\n  labels: {cluster.x-k8s.io/v1beta2: cluster.x-k8s.io}\n  annotations:\n    apiVersion: cluster.x-k8s.io/v1beta2\n  finalizers: [addons.cluster.x-k8s.io]\ndata:\n  manifest: |\n    apiVersion: cluster.x-k8s.io/v1beta2\ntype: cluster.x-k8s.io/secret\napiVersion: cluster.x-k8s.io/v1beta2\n...\n",
        private: "---\nmetadata:\n  labels: {cluster.x-k8s.io/v1beta2: cluster.x-k8s.io}\n  annotations:\n    apiVersion: cluster.x-k8s.io/v1beta2\n  finalizers: [addons.cluster.x-k8s.io]\ndata:\n  manifest: |\n    apiVersion: cluster.x-k8s.io/v1beta2\ntype: cluster.x-k8s.io/secret\napiVersion: cluster.hypershift.openshift.io/v1beta2\n...\n",
    },
    Row {
        name: "keys of a quota",
        shape: Shape::Quota,
        standard: "spec:\n  hard:\n    count/machines.cluster.x-k8s.io: 5\n    'count/clusters.cluster.x-k8s.io': \"1\"\n    pods: 3\n",
        private: "spec:\n  hard:\n    count/machines.cluster.hypershift.openshift.io: 5\n    'count/clusters.cluster.hypershift.openshift.io': \"1\"\n    pods: 3\n",
    },
    Row {
        name: "a CRD's name and group, and its schema",
        shape: Shape::Crd,
        standard: "metadata: {name: machines.cluster.x-k8s.io}\nspec:\n  group: cluster.x-k8s.io\n  versions:\n  - schema:\n      openAPIV3Schema: {default: {apiVersion: cluster.x-k8s.io/v1}}\n",
        private: "metadata: {name: machines.cluster.hypershift.openshift.io}\nspec:\n  group: cluster.hypershift.openshift.io\n  versions:\n  - schema:\n      openAPIV3Schema: {default: {apiVersion: cluster.x-k8s.io/v1}}\n",
    },
    Row {
        name: "a mapping for a key is no field",
        shape: Shape::Plain,
        standard: "? {apiVersion: cluster.x-k8s.io/v1}\n: {apiVersion: cluster.x-k8s.io/v1}\napiVersion: cluster.x-k8s.io/v1\n",
        private: "? {apiVersion: cluster.x-k8s.io/v1}\n: {apiVersion: cluster.x-k8s.io/v1}\napiVersion: cluster.hypershift.openshift.io/v1\n",
    },
];

#[test]
fn only_yaml_scalars_with_groups_are_changed() {
    for row in ROWS {
        let root = Node::Document(row.shape);
        let (out, counts) =
            swapped(root, row.standard).unwrap_or_else(|refusal| panic!("{}: {refusal}", row.name));
        assert_eq!(out, row.private, "{}", row.name);
        assert!(
            counts.to_private > 0 && counts.to_standard == 0,
            "{}",
            row.name
        );
        let (back, counts) = swapped(root, row.private).unwrap();
        assert_eq!(back, row.standard, "{}", row.name);
        assert!(
            counts.to_standard > 0 && counts.to_private == 0,
            "{}",
            row.name
        );
    }
}

#[test]
fn yaml_without_group_names_is_unchanged() {
    let alias = "a: &x {b: c}\nd: *x\ne:\n  <<: *x\n";
    for yaml in [
        "",
        "# only this\n",
        "---\n",
        "null\n",
        "a: b\n",
        "apiVersion: v1\n",
        alias,
        "- !!binary YQ==\n",
        "'a': \t\n",
    ] {
        assert_eq!(
            swapped(Node::Generic, yaml),
            Ok((yaml.to_owned(), Counts::default())),
            "{yaml:?}"
        );
    }
}

/// Check R28.
#[test]
fn escaped_yaml_names_are_translated() {
    let escaped = r#"apiVersion: "cluster\u002ex-k8s.io/v1beta\
        2""#;
    let (out, _) = swapped(Node::Generic, escaped).unwrap();
    assert_eq!(
        out,
        r#"apiVersion: "cluster.hypershift.openshift.io/v1beta2""#
    );
    let key = r#"spec: {hard: {"count/machines.cluster\x2ex-k8s.io" : 1}}"#;
    let (out, _) = swapped(Node::Document(Shape::Quota), key).unwrap();
    assert_eq!(
        out,
        r#"spec: {hard: {"count/machines.cluster.hypershift.openshift.io" : 1}}"#
    );
    let comment = "apiVersion: \"cluster\\x2ex-k8s.io/v1\" # \"\n";
    let (out, _) = swapped(Node::Generic, comment).unwrap();
    assert_eq!(
        out,
        "apiVersion: \"cluster.hypershift.openshift.io/v1\" # \"\n"
    );
    let field = "\"api\\u0056ersion\": cluster.x-k8s.io/v1\n";
    let (out, _) = swapped(Node::Generic, field).unwrap();
    assert_eq!(
        out,
        "\"api\\u0056ersion\": cluster.hypershift.openshift.io/v1\n"
    );
}

#[test]
fn ambiguous_yaml_is_rejected() {
    let deep_block = nested(1001);
    let name = "apiVersion: cluster.x-k8s.io/v1beta2";
    for (what, yaml, code) in [
        (
            "quotes in the name of an anchor",
            "apiVersion: &a'cluster.x-k8s.io/v1' 'cluster.x-k8s.io/v1'\n".to_owned(),
            422,
        ),
        ("not YAML", "a: [b\n".to_owned(), 400),
        ("undefined alias", "a: *x\n".to_owned(), 400),
        ("two documents", format!("{name}\n---\na: b\n"), 400),
        ("an empty second document", format!("{name}\n---\n"), 400),
        ("text behind the end", format!("{name}\n...\na: b\n"), 400),
        ("byte order mark", format!("\u{feff}{name}\n"), 400),
        ("zero byte", format!("a: b\0\n{name}\n"), 400),
        ("control character", format!("a: b\u{7}\n{name}\n"), 400),
        ("next line", format!("a: b\u{85}{name}\n"), 400),
        ("line separator", format!("a: b\u{2028}{name}\n"), 400),
        ("nesting", deep_block, 413),
        ("alias", format!("a: &x b\nc: *x\n{name}\n"), 422),
        ("alias for a key", format!("a: &x b\n*x : c\n{name}\n"), 422),
        (
            "alias of a place",
            "a: &x cluster.x-k8s.io/v1\napiVersion: *x\n".to_owned(),
            422,
        ),
        ("merge key", format!("<<: {{{name}}}\n"), 422),
        (
            "base64 at a place",
            "apiVersion: !!binary Y2x1c3Rlci54LWs4cy5pby92MQ==\n".to_owned(),
            422,
        ),
        (
            "base64 as a key",
            "!!binary YXBpVmVyc2lvbg==: cluster.x-k8s.io/v1\n".to_owned(),
            422,
        ),
        (
            "own tag at a place",
            "apiVersion: !version cluster.x-k8s.io/v1\n".to_owned(),
            422,
        ),
        (
            "renamed tag",
            "%TAG ! tag:yaml.org,2002:\n---\napiVersion: !binary YQ==\n".to_owned(),
            422,
        ),
        (
            "tag on a mapping",
            "a: !!omap {apiVersion: cluster.x-k8s.io/v1}\n".to_owned(),
            422,
        ),
        ("tag on a sequence", "a: !list [b]\n".to_owned(), 422),
        (
            "block text at a place",
            "apiVersion: |-\n  cluster.x-k8s.io/v1beta2\n".to_owned(),
            422,
        ),
        (
            "folded text at a place",
            "apiVersion: >-\n  cluster.x-k8s.io/v1beta2\n".to_owned(),
            422,
        ),
        (
            "escapes behind a tag",
            "apiVersion: !!str \"cluster\\x2ex-k8s.io/v1\"\n".to_owned(),
            422,
        ),
    ] {
        let refusal = swapped(Node::Generic, &yaml).unwrap_err();
        assert_eq!(refusal.code, code, "{what}: {refusal}");
    }
    let mut out = Vec::new();
    assert_eq!(
        swap(&Rules::default(), Node::Generic, b"a: \xff\n", &mut out)
            .unwrap_err()
            .code,
        400
    );
}

#[test]
fn yaml_errors_name_the_line_and_quote_nothing() {
    let refusal = swapped(Node::Generic, "a: b\nsecret: [\n").unwrap_err();
    assert!(refusal.message.contains("line 3"), "{}", refusal.message);
    assert!(!refusal.message.contains("secret"), "{}", refusal.message);
}

/// That many mappings, each in the one before.
fn nested(levels: usize) -> String {
    let lines: Vec<_> = (0..levels)
        .map(|level| format!("{}a:\n", " ".repeat(level)))
        .collect();
    lines.concat()
}

#[test]
fn yaml_may_nest_up_to_the_limit() {
    let yaml = nested(1000);
    assert_eq!(
        swapped(Node::Generic, &yaml),
        Ok((yaml.clone(), Counts::default()))
    );
}
