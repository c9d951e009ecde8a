//! What must hold for every input, one function for each fuzz target.
//!
//! The first byte of an input picks what the rest represents, so that one corpus reaches every kind of document.

use std::sync::LazyLock;

use capi_proxy::gate::{Gate, Step};
use capi_translate::json::{Documents, Json};
use capi_translate::place::{Node, Shape};
use capi_translate::target::Target;
use capi_translate::{
    Direction, Refusal, Rules, json_patch as patch, protobuf as proto, yaml as yml,
};
use serde_json::Value;

static RULES: LazyLock<Rules> = LazyLock::new(Rules::default);

const SHAPES: [Shape; 13] = [
    Shape::Plain,
    Shape::Topology,
    Shape::Data,
    Shape::Crd,
    Shape::ApiService,
    Shape::Rbac,
    Shape::Webhooks,
    Shape::AccessReview,
    Shape::RulesReview,
    Shape::AdmissionPolicy,
    Shape::FlowSchema,
    Shape::Quota,
    Shape::StorageMigration,
];
const RESOURCES: [(&str, &str); 8] = [
    ("", "events"),
    ("", "pods"),
    ("", "resourcequotas"),
    ("", "secrets"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("apps", "statefulsets"),
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("unknown.example.com", "things"),
];

/// The streaming JSON translator: a split changes nothing, and a second swap gives the input back.
pub fn json(data: &[u8]) {
    let [pick, split, body @ ..] = data else {
        return;
    };
    let roots = [
        Node::Discovery,
        Node::OpenApi,
        Node::OpenApiIndex,
        Node::AdmissionReview,
        Node::ConversionReview,
    ];
    let shape = SHAPES[usize::from(*pick) % SHAPES.len()];
    let root = match pick >> 4 {
        0..8 => Node::Document(shape),
        8..11 => Node::WatchEvent(shape),
        other => roots[usize::from(other) % roots.len()],
    };
    let whole = run_json(root, Direction::Request, body, body.len());
    let pieces = run_json(root, Direction::Request, body, usize::from(*split) % 7 + 1);
    assert_eq!(
        whole.as_ref().ok(),
        pieces.as_ref().ok(),
        "a split changes the result"
    );
    let _ = run_json(root, Direction::Response, body, usize::from(*split) + 1);
    let Ok(out) = whole else { return };
    // Escaped names are written plainly, and the salt of a hash is put on twice.
    if body.contains(&b'\\') || root == Node::OpenApiIndex {
        return;
    }
    let back = run_json(root, Direction::Request, &out, body.len());
    assert_eq!(
        back.as_deref(),
        Ok(body),
        "a second swap does not give the input back"
    );
    if let Ok(input) = serde_json::from_slice::<Value>(body) {
        let output =
            serde_json::from_slice::<Value>(&out).expect("the output is as sound as the input");
        assert_eq!(size(&input), size(&output), "values are gone or new");
    }
}

/// How many values a document holds.
fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(size).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

fn run_json(
    root: Node,
    direction: Direction,
    body: &[u8],
    piece: usize,
) -> Result<Vec<u8>, Refusal> {
    let documents = if matches!(root, Node::WatchEvent(_)) {
        Documents::Many
    } else {
        Documents::One
    };
    let mut json = Json::new(&RULES, direction, documents, root);
    let mut out = Vec::new();
    for piece in body.chunks(piece.max(1)) {
        json.push(piece, &mut out)?;
    }
    json.finish(&mut out)?;
    Ok(out)
}

/// JSON Patch: a second swap gives the input back.
pub fn json_patch(data: &[u8]) {
    check_involution(data, |root, body, out| {
        patch::swap(&RULES, root, body, out).map(drop)
    });
}

/// YAML: a second swap gives the input back.
pub fn yaml(data: &[u8]) {
    check_involution(data, |root, body, out| {
        yml::swap(&RULES, root, body, out).map(drop)
    });
}

fn check_involution(data: &[u8], swap: impl Fn(Node, &[u8], &mut Vec<u8>) -> Result<(), Refusal>) {
    let [pick, body @ ..] = data else { return };
    let root = Node::Document(SHAPES[usize::from(*pick) % SHAPES.len()]);
    let mut out = Vec::new();
    if swap(root, body, &mut out).is_err() || body.contains(&b'\\') {
        return;
    }
    let mut back = Vec::new();
    swap(root, &out, &mut back).expect("what was swapped can be swapped again");
    assert_eq!(back, body, "a second swap does not give the input back");
}

/// Protobuf: a second swap gives the input back, bytes that waste space included.
pub fn protobuf(data: &[u8]) {
    let [pick, body @ ..] = data else { return };
    let (group, resource) = RESOURCES[usize::from(*pick) % RESOURCES.len()];
    let body = [b"k8s\0", body].concat();
    let mut out = Vec::new();
    if proto::swap(&RULES, group, resource, &body, &mut out).is_err() {
        assert!(out.is_empty(), "a refused body leaves nothing behind");
        return;
    }
    let mut back = Vec::new();
    proto::swap(&RULES, group, resource, &out, &mut back)
        .expect("what was swapped can be swapped again");
    assert_eq!(back, body, "a second swap does not give the input back");
}

/// Paths and queries: what is sent upstream is unambiguous, and swapping twice is the identity.
pub fn target(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let parse = |url: &str| Target::parse(&RULES, url);
    let Ok(first) = parse(text) else { return };
    let path = first.upstream().split('?').next().unwrap_or_default();
    assert!(
        path.starts_with('/') && !path.contains("/../") && !path.ends_with("/.."),
        "{path}"
    );
    let second = parse(first.upstream()).expect("what is sent upstream is canonical");
    let third = parse(second.upstream()).expect("and stays so");
    // The salt of a hash is taken off once.
    if !text.contains("hash=") {
        assert_eq!(first.upstream(), third.upstream());
    }
}

/// The framing of requests: decisions do not depend on chunks.
pub fn gate(data: &[u8]) {
    let [split, stream @ ..] = data else { return };
    assert_eq!(
        run_gate(stream, stream.len()),
        run_gate(stream, usize::from(*split) + 1)
    );
}

/// How many bytes the gate lets through, and whether it then closed.
fn run_gate(stream: &[u8], piece: usize) -> (usize, bool) {
    let mut gate = Gate::default();
    let (mut released, mut arrived) = (0, 0);
    while arrived < stream.len() {
        arrived = stream.len().min(arrived + piece);
        loop {
            match gate.step(&stream[released..arrived]) {
                Step::Release(length) => {
                    assert!(
                        length > 0 && released + length <= arrived,
                        "released what is not there"
                    );
                    released += length;
                }
                Step::More => break,
                Step::Refuse(_) => return (released, true),
            }
        }
    }
    (released, false)
}
