//! Random documents: round trips, chunk splits, and the oracle.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;

/// Small random documents from a seed, written as text without a detour: a million of them in seconds.
struct Generator(u64);

impl Generator {
    fn next(&mut self, below: u64) -> usize {
        // xorshift64*: good enough to mix documents, and the same on every machine.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        usize::try_from((self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % below).unwrap()
    }

    fn pick(&mut self, from: &[&'static str]) -> &'static str {
        from[self.next(from.len() as u64)]
    }

    fn value(&mut self, depth: u64, out: &mut String) {
        match self.next(if depth == 0 { 3 } else { 9 }) {
            0 => {
                out.push_str(self.pick(&["null", "true", "-0.5e+3", "0", "1234567890123456789012"]))
            }
            1 | 2 => {
                let text = self.pick(VALUES);
                let _ = write!(out, "\"{text}\"");
            }
            3 => {
                out.push('[');
                for index in 0..self.next(3) {
                    out.push_str(if index == 0 { "" } else { " , " });
                    self.value(depth - 1, out);
                }
                out.push(']');
            }
            _ => {
                out.push('{');
                for index in 0..=self.next(4) {
                    out.push_str(if index == 0 { "" } else { "," });
                    let key = self.pick(KEYS);
                    let _ = write!(out, "\"{key}\":");
                    self.value(depth - 1, out);
                }
                out.push('}');
            }
        }
    }
}

const VALUES: &[&str] = &[
    "cluster.x-k8s.io/v1beta2",
    "cluster.hypershift.openshift.io/v1beta2",
    "infrastructure.cluster.x-k8s.io",
    "ipam.cluster.hypershift.openshift.io",
    "machines.cluster.x-k8s.io",
    "v1beta2.cluster.hypershift.openshift.io",
    "io.x-k8s.cluster.v1beta2.Machine",
    "#/definitions/io.openshift.hypershift.cluster.v1.M",
    "xcluster.x-k8s.io/v1",
    "cluster.x-k8s.io.evil.com",
    "a \\\" b",
    "é😀",
    "",
];

const KEYS: &[&str] = &[
    "apiVersion",
    "apiVersion",
    "apiVersion",
    "apiGroup",
    "apiGroup",
    "apiGroups",
    "metadata",
    "name",
    "spec",
    "status",
    "items",
    "object",
    "group",
    "rules",
    "labels",
    "fieldsV1",
    "variables",
    "data",
    "hard",
    "paths",
    "schemas",
    "$ref",
    "cluster.x-k8s.io/cluster-name",
    "count/machines.cluster.x-k8s.io",
    "/apis/cluster.hypershift.openshift.io/v1",
    "io.x-k8s.cluster.v1beta2.Machine",
];

/// Check R02.
#[test]
fn a_million_documents_round_trip_to_the_same_bytes() {
    let roots = [
        PLAIN,
        Node::Document(Shape::Crd),
        Node::Document(Shape::Quota),
        Node::OpenApi,
        Node::Discovery,
    ];
    let mut generator = Generator(0x5eed);
    let (mut document, mut changed) = (String::new(), 0_u32);
    for case in 0..1_000_000 {
        document.clear();
        document.push_str("{\"metadata\":[");
        generator.value(3, &mut document);
        document.push(',');
        generator.value(4, &mut document);
        document.push_str("]}");
        let root = roots[case % roots.len()];
        let once = translate(root, Direction::Request, &[document.as_bytes()]).unwrap();
        changed += u32::from(once != document.as_bytes());
        let twice = translate(root, Direction::Request, &[&once]).unwrap();
        assert!(twice == document.as_bytes(), "case {case}: {document}");
    }
    assert!(
        changed > 100_000,
        "too few documents held a place: {changed}"
    );
}

// === properties ===

fn roots() -> impl Strategy<Value = Node> {
    prop_oneof![
        Just(PLAIN),
        Just(Node::Document(Shape::Crd)),
        Just(Node::Document(Shape::Rbac)),
        Just(Node::Document(Shape::Topology)),
        Just(Node::Document(Shape::Quota)),
        Just(Node::Document(Shape::Data)),
        Just(Node::WatchEvent(Shape::ApiService)),
        Just(Node::Discovery),
        Just(Node::OpenApi),
        Just(Node::AdmissionReview),
    ]
}

fn strings() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(vec![
            "cluster.x-k8s.io/v1beta2", "cluster.hypershift.openshift.io/v1beta2", "infrastructure.cluster.x-k8s.io",
            "ipam.cluster.hypershift.openshift.io", "machines.cluster.x-k8s.io", "machines.cluster.hypershift.openshift.io",
            "v1beta2.cluster.x-k8s.io", "count/machines.cluster.x-k8s.io", "/apis/cluster.x-k8s.io/v1beta2",
            "io.x-k8s.cluster.v1beta2.Machine", "#/definitions/io.openshift.hypershift.cluster.v1.M",
            "listClusterXK8sIoV1beta2Machine", "clusterHypershiftOpenshiftIo_v1", "xcluster.x-k8s.io/v1",
            "clusterctl.cluster.x-k8s.io/v1", "cluster.x-k8s.io/", "v1",
        ]).prop_map(str::to_owned),
        1 => any::<String>(),
    ]
}

fn keys() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => prop::sample::select(vec![
            "apiVersion", "apiGroup", "apiGroups", "metadata", "name", "spec", "status", "items", "object", "group", "rules",
            "resourceNames", "labels", "annotations", "fieldsV1", "variables", "ownerReferences", "data", "hard", "used",
            "rows", "cells", "paths", "definitions", "components", "schemas", "$ref", "tags", "operationId", "properties",
            "x-kubernetes-group-version-kind", "request", "kind", "groupVersion", "resources", "responseKind",
        ]).prop_map(str::to_owned),
        1 => strings(),
    ]
}

fn documents() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        strings().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 48, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((keys(), inner), 0..7)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// `"kind":"Status"` starts free text, which is one-way: not for the involution.
fn plain_documents() -> impl Strategy<Value = (Node, Value)> {
    (roots(), documents())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    /// Check R02.
    #[test]
    fn json_round_trips_to_the_same_bytes((root, document) in plain_documents(), pretty in any::<bool>()) {
        let text = if pretty { serde_json::to_vec_pretty(&document) } else { serde_json::to_vec(&document) }.unwrap();
        let once = translate(root, Direction::Request, &[&text]).unwrap();
        let twice = translate(root, Direction::Request, &[&once]).unwrap();
        prop_assert_eq!(String::from_utf8(twice).unwrap(), String::from_utf8(text).unwrap());
    }

    #[test]
    fn the_translator_agrees_with_the_oracle((root, document) in plain_documents()) {
        let text = serde_json::to_vec(&document).unwrap();
        let out = translate(root, Direction::Response, &[&text]).unwrap();
        let ours: Value = serde_json::from_slice(&out).unwrap();
        prop_assert_eq!(ours, oracle(&RULES, root, &document));
    }

    /// Check R30.
    #[test]
    fn any_chunks_give_the_same_bytes((root, document) in plain_documents(), sizes in prop::collection::vec(1usize..9, 1..6)) {
        let text = serde_json::to_vec(&document).unwrap();
        let whole = translate(root, Direction::Response, &[&text]).unwrap();
        let mut chunks = Vec::new();
        let mut rest = text.as_slice();
        for size in sizes.iter().cycle() {
            if rest.is_empty() { break; }
            let (chunk, after) = rest.split_at((*size).min(rest.len()));
            chunks.push(chunk);
            rest = after;
        }
        prop_assert_eq!(translate(root, Direction::Response, &chunks).unwrap(), whole);
    }

    /// Check R29.
    #[test]
    fn the_translator_accepts_the_same_json_as_a_parser(mut text in documents().prop_map(|d| serde_json::to_vec(&d).unwrap()), at in any::<prop::sample::Index>(), bit in 0u8..8) {
        // One flipped bit: what no parser reads must be refused, what is still JSON may pass.
        let at = at.index(text.len());
        text[at] ^= 1 << bit;
        let parses = serde_json::from_slice::<&serde_json::value::RawValue>(&text).is_ok();
        let passes = translate(PLAIN, Direction::Response, &[&text]).is_ok();
        prop_assert_eq!(passes, parses, "{}", String::from_utf8_lossy(&text));
    }

    /// Check R29.
    #[test]
    fn translating_arbitrary_json_never_panics(root in roots(), bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = translate(root, Direction::Response, &[&bytes]);
    }
}

/// Text as a client may write it into an annotation: any but private names, of which it knows none.
fn annotations() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            "cluster.x-k8s.io/v1beta2",
            "infrastructure.cluster.x-k8s.io",
            "machines.cluster.x-k8s.io",
            "cluster.x-k8s.io/cluster-name",
            "hypershift.openshift.io/v1beta1",
            "xcluster.hypershift.openshift.io",
            "/apis/cluster.x-k8s.io/v1beta2",
            "{\"apiVersion\":\"",
            "\"",
            ",",
            " ",
            "\\",
            "\n",
            "é😀",
        ])
        .prop_map(str::to_owned),
        any::<String>(),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    /// Check F07.
    #[test]
    fn last_applied_of_a_client_round_trips(text in annotations(), size in 1usize..40) {
        let body = with_last_applied(&text);
        let chunks: Vec<_> = body.chunks(size).collect();
        let sent = translate(PLAIN, Direction::Request, &chunks).unwrap();
        let chunks: Vec<_> = sent.chunks(size).collect();
        let read = translate(PLAIN, Direction::Response, &chunks).unwrap();
        prop_assert_eq!(read, body);
    }
}
