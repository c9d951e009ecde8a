//! The scanner against a naive oracle, against itself at every chunk split, and against its own inverse.

mod properties;

use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::*;
use crate::place::Shape;

static RULES: LazyLock<Rules> = LazyLock::new(Rules::default);

fn translate(root: Node, direction: Direction, chunks: &[&[u8]]) -> Result<Vec<u8>, Refusal> {
    let mut json = Json::new(&RULES, direction, Documents::One, root);
    let mut out = Vec::new();
    for chunk in chunks {
        json.push(chunk, &mut out)?;
    }
    json.finish(&mut out)?;
    Ok(out)
}

fn swap(root: Node, text: &str) -> String {
    let out = translate(root, Direction::Response, &[text.as_bytes()])
        .unwrap_or_else(|error| panic!("{error}: {text}"));
    String::from_utf8(out).unwrap()
}

const PLAIN: Node = Node::Document(Shape::Plain);

/// The same walk over a parsed document: slow, but obviously correct.
fn oracle(rules: &Rules, node: Node, value: &Value) -> Value {
    let swap_text = |action: Action, text: &str| {
        name::swap_owned(rules, Direction::Response, action, text)
            .map_or_else(|| text.to_owned(), |(text, _)| text)
    };
    match value {
        Value::String(text) => Value::String(
            node.action()
                .map_or_else(|| text.clone(), |action| swap_text(action, text)),
        ),
        Value::Array(items) => items.iter().map(|item| oracle(rules, node, item)).collect(),
        Value::Object(fields) => {
            let is_status = matches!(node, Node::Document(_))
                && fields.get("kind") == Some(&Value::from("Status"))
                && fields.get("apiVersion") == Some(&Value::from("v1"));
            let node = match node {
                Node::Document(shape) if is_status => Node::Status(shape),
                other => other,
            };
            let field = |(key, value): (&String, &Value)| {
                let name = node
                    .key_action()
                    .map_or_else(|| key.clone(), |action| swap_text(action, key));
                (name, oracle(rules, node.child(key.as_bytes()), value))
            };
            Value::Object(fields.iter().map(field).collect::<Map<_, _>>())
        }
        scalar => scalar.clone(),
    }
}

/// A row: what upstream says, what the client sees; and the reverse, but for free text.
struct Row {
    name: &'static str,
    root: Node,
    private: &'static str,
    standard: &'static str,
}

const ROWS: &[Row] = &[
    Row {
        name: "r01 a machine: references and managed fields, not labels, finalizers or fieldsV1",
        root: PLAIN,
        private: r#"{"apiVersion":"cluster.hypershift.openshift.io/v1beta2","kind":"Machine","metadata":{"name":"m","resourceVersion":"0123","labels":{"cluster.x-k8s.io/cluster-name":"c"},"finalizers":["machine.cluster.x-k8s.io"],"ownerReferences":[{"apiVersion":"cluster.hypershift.openshift.io/v1beta2","kind":"MachineSet","uid":"u"}],"managedFields":[{"manager":"m","apiVersion":"cluster.hypershift.openshift.io/v1beta2","fieldsV1":{"f:apiVersion":{"apiVersion":"cluster.hypershift.openshift.io/v1beta2"}}}]},"spec":{"infrastructureRef":{"apiGroup":"infrastructure.cluster.hypershift.openshift.io","kind":"DevMachine"},"replicas":1.50e+3}}"#,
        standard: r#"{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Machine","metadata":{"name":"m","resourceVersion":"0123","labels":{"cluster.x-k8s.io/cluster-name":"c"},"finalizers":["machine.cluster.x-k8s.io"],"ownerReferences":[{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"MachineSet","uid":"u"}],"managedFields":[{"manager":"m","apiVersion":"cluster.x-k8s.io/v1beta2","fieldsV1":{"f:apiVersion":{"apiVersion":"cluster.hypershift.openshift.io/v1beta2"}}}]},"spec":{"infrastructureRef":{"apiGroup":"infrastructure.cluster.x-k8s.io","kind":"DevMachine"},"replicas":1.50e+3}}"#,
    },
    Row {
        name: "r04 and r05 references by group and by version, in spec and status",
        root: PLAIN,
        private: r#"{"spec":{"bootstrap":{"configRef":{"apiGroup":"bootstrap.cluster.hypershift.openshift.io"}}},"status":{"ref":{"apiVersion":"controlplane.cluster.hypershift.openshift.io/v1beta1"}}}"#,
        standard: r#"{"spec":{"bootstrap":{"configRef":{"apiGroup":"bootstrap.cluster.x-k8s.io"}}},"status":{"ref":{"apiVersion":"controlplane.cluster.x-k8s.io/v1beta1"}}}"#,
    },
    Row {
        name: "r06 and r07 owners of core objects, what an event is about",
        root: PLAIN,
        private: r#"{"metadata":{"ownerReferences":[{"apiVersion":"cluster.hypershift.openshift.io/v1beta2"}]},"involvedObject":{"apiVersion":"cluster.hypershift.openshift.io/v1beta2"},"regarding":{"apiVersion":"ipam.cluster.hypershift.openshift.io/v1"},"related":{"apiVersion":"cluster.x-k8s.io/v1"}}"#,
        standard: r#"{"metadata":{"ownerReferences":[{"apiVersion":"cluster.x-k8s.io/v1beta2"}]},"involvedObject":{"apiVersion":"cluster.x-k8s.io/v1beta2"},"regarding":{"apiVersion":"ipam.cluster.x-k8s.io/v1"},"related":{"apiVersion":"cluster.hypershift.openshift.io/v1"}}"#,
    },
    Row {
        name: "r08 and r10 annotations are opaque",
        root: PLAIN,
        private: r#"{"metadata":{"annotations":{"cluster.x-k8s.io/cloned-from-groupkind":"T.infrastructure.cluster.x-k8s.io","apiVersion":"cluster.x-k8s.io/v1beta2"}}}"#,
        standard: r#"{"metadata":{"annotations":{"cluster.x-k8s.io/cloned-from-groupkind":"T.infrastructure.cluster.x-k8s.io","apiVersion":"cluster.x-k8s.io/v1beta2"}}}"#,
    },
    Row {
        name: "r11 the data of a ConfigMap is the user's",
        root: Node::Document(Shape::Data),
        private: r#"{"apiVersion":"v1","data":{"apiVersion":"cluster.x-k8s.io/v1beta1"},"items":[{"stringData":{"apiGroup":"cluster.x-k8s.io"}}]}"#,
        standard: r#"{"apiVersion":"v1","data":{"apiVersion":"cluster.x-k8s.io/v1beta1"},"items":[{"stringData":{"apiGroup":"cluster.x-k8s.io"}}]}"#,
    },
    Row {
        name: "r11 variables of a Cluster are the user's, those of a provider are not",
        root: Node::Document(Shape::Topology),
        private: r#"{"spec":{"topology":{"variables":[{"value":{"apiVersion":"cluster.x-k8s.io/v1beta2"}}],"classRef":{"apiVersion":"cluster.hypershift.openshift.io/v1beta2"}}}}"#,
        standard: r#"{"spec":{"topology":{"variables":[{"value":{"apiVersion":"cluster.x-k8s.io/v1beta2"}}],"classRef":{"apiVersion":"cluster.x-k8s.io/v1beta2"}}}}"#,
    },
    Row {
        name: "r12 a CRD: name and group, not contract labels or schema",
        root: Node::Document(Shape::Crd),
        private: r#"{"metadata":{"name":"machines.cluster.hypershift.openshift.io","labels":{"cluster.x-k8s.io/v1beta2":"v1beta2"}},"spec":{"group":"cluster.hypershift.openshift.io","versions":[{"schema":{"openAPIV3Schema":{"default":{"apiVersion":"cluster.x-k8s.io/v1"}}}}]}}"#,
        standard: r#"{"metadata":{"name":"machines.cluster.x-k8s.io","labels":{"cluster.x-k8s.io/v1beta2":"v1beta2"}},"spec":{"group":"cluster.x-k8s.io","versions":[{"schema":{"openAPIV3Schema":{"default":{"apiVersion":"cluster.x-k8s.io/v1"}}}}]}}"#,
    },
    Row {
        name: "r13 standard and private CRDs in one list: each once, under the other name",
        root: Node::Document(Shape::Crd),
        private: r#"{"items":[{"metadata":{"name":"machines.cluster.hypershift.openshift.io"}},{"metadata":{"name":"machines.cluster.x-k8s.io"}}],"kind":"List","metadata":{"resourceVersion":"7"}}"#,
        standard: r#"{"items":[{"metadata":{"name":"machines.cluster.x-k8s.io"}},{"metadata":{"name":"machines.cluster.hypershift.openshift.io"}}],"kind":"List","metadata":{"resourceVersion":"7"}}"#,
    },
    Row {
        name: "r14 legacy discovery",
        root: Node::Discovery,
        private: r#"{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"cluster.hypershift.openshift.io","versions":[{"groupVersion":"cluster.hypershift.openshift.io/v1beta2","version":"v1beta2"}],"preferredVersion":{"groupVersion":"cluster.hypershift.openshift.io/v1beta2"}}]}"#,
        standard: r#"{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"cluster.x-k8s.io","versions":[{"groupVersion":"cluster.x-k8s.io/v1beta2","version":"v1beta2"}],"preferredVersion":{"groupVersion":"cluster.x-k8s.io/v1beta2"}}]}"#,
    },
    Row {
        name: "r14 aggregated discovery",
        root: Node::Discovery,
        private: r#"{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"cluster.hypershift.openshift.io"},"versions":[{"resources":[{"resource":"machines","responseKind":{"group":"cluster.hypershift.openshift.io"},"subresources":[{"responseKind":{"group":"cluster.hypershift.openshift.io"}}]}]}]}]}"#,
        standard: r#"{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"cluster.x-k8s.io"},"versions":[{"resources":[{"resource":"machines","responseKind":{"group":"cluster.x-k8s.io"},"subresources":[{"responseKind":{"group":"cluster.x-k8s.io"}}]}]}]}]}"#,
    },
    Row {
        name: "r15 an OpenAPI document: keys of paths and schemas, references, kinds, operations",
        root: Node::OpenApi,
        private: r##"{"paths":{"/apis/cluster.hypershift.openshift.io/v1beta2/machines":{"get":{"tags":["clusterHypershiftOpenshiftIo_v1beta2"],"operationId":"listClusterHypershiftOpenshiftIoV1beta2Machine","schema":{"$ref":"#/components/schemas/io.openshift.hypershift.cluster.v1beta2.Machine"},"x-kubernetes-group-version-kind":{"group":"cluster.hypershift.openshift.io"}}}},"components":{"schemas":{"io.openshift.hypershift.cluster.v1beta2.Machine":{"properties":{"tags":{"items":{"$ref":"#/definitions/io.openshift.hypershift.cluster.v1beta2.X"}},"$ref":{"default":"io.openshift.hypershift.cluster.v1.X"}}}}}}"##,
        standard: r##"{"paths":{"/apis/cluster.x-k8s.io/v1beta2/machines":{"get":{"tags":["clusterXK8sIo_v1beta2"],"operationId":"listClusterXK8sIoV1beta2Machine","schema":{"$ref":"#/components/schemas/io.x-k8s.cluster.v1beta2.Machine"},"x-kubernetes-group-version-kind":{"group":"cluster.x-k8s.io"}}}},"components":{"schemas":{"io.x-k8s.cluster.v1beta2.Machine":{"properties":{"tags":{"items":{"$ref":"#/definitions/io.x-k8s.cluster.v1beta2.X"}},"$ref":{"default":"io.openshift.hypershift.cluster.v1.X"}}}}}}"##,
    },
    Row {
        name: "r16 an access review names the private group",
        root: Node::Document(Shape::AccessReview),
        private: r#"{"spec":{"resourceAttributes":{"group":"cluster.hypershift.openshift.io","resource":"machines"}}}"#,
        standard: r#"{"spec":{"resourceAttributes":{"group":"cluster.x-k8s.io","resource":"machines"}}}"#,
    },
    Row {
        name: "r16 the rules that a client has",
        root: Node::Document(Shape::RulesReview),
        private: r#"{"status":{"resourceRules":[{"apiGroups":["","cluster.hypershift.openshift.io"],"resourceNames":["machines.cluster.hypershift.openshift.io"]}]}}"#,
        standard: r#"{"status":{"resourceRules":[{"apiGroups":["","cluster.x-k8s.io"],"resourceNames":["machines.cluster.x-k8s.io"]}]}}"#,
    },
    Row {
        name: "r17 RBAC rules",
        root: Node::Document(Shape::Rbac),
        private: r#"{"items":[{"rules":[{"apiGroups":["cluster.hypershift.openshift.io","apps"],"resources":["machines"]}],"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"cluster.x-k8s.io/x":"y"}}]}}]}"#,
        standard: r#"{"items":[{"rules":[{"apiGroups":["cluster.x-k8s.io","apps"],"resources":["machines"]}],"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"cluster.x-k8s.io/x":"y"}}]}}]}"#,
    },
    Row {
        name: "webhooks, admission policies, flow schemas, quotas, storage migrations",
        root: Node::Document(Shape::Webhooks),
        private: r#"{"webhooks":[{"rules":[{"apiGroups":["cluster.hypershift.openshift.io"]}],"clientConfig":{"service":{"path":"/validate-cluster-x-k8s-io-v1"}}}]}"#,
        standard: r#"{"webhooks":[{"rules":[{"apiGroups":["cluster.x-k8s.io"]}],"clientConfig":{"service":{"path":"/validate-cluster-x-k8s-io-v1"}}}]}"#,
    },
    Row {
        name: "admission policies",
        root: Node::Document(Shape::AdmissionPolicy),
        private: r#"{"spec":{"paramKind":{"apiVersion":"cluster.hypershift.openshift.io/v1"},"matchConstraints":{"resourceRules":[{"apiGroups":["cluster.hypershift.openshift.io"]}],"excludeResourceRules":[{"apiGroups":["ipam.cluster.hypershift.openshift.io"]}]}}}"#,
        standard: r#"{"spec":{"paramKind":{"apiVersion":"cluster.x-k8s.io/v1"},"matchConstraints":{"resourceRules":[{"apiGroups":["cluster.x-k8s.io"]}],"excludeResourceRules":[{"apiGroups":["ipam.cluster.x-k8s.io"]}]}}}"#,
    },
    Row {
        name: "flow schemas",
        root: Node::Document(Shape::FlowSchema),
        private: r#"{"spec":{"rules":[{"resourceRules":[{"apiGroups":["cluster.hypershift.openshift.io"]}]}]}}"#,
        standard: r#"{"spec":{"rules":[{"resourceRules":[{"apiGroups":["cluster.x-k8s.io"]}]}]}}"#,
    },
    Row {
        name: "quota keys",
        root: Node::Document(Shape::Quota),
        private: r#"{"spec":{"hard":{"count/machines.cluster.hypershift.openshift.io":"5","pods":"cluster.x-k8s.io"}},"status":{"used":{"count/machines.cluster.hypershift.openshift.io":"1"}}}"#,
        standard: r#"{"spec":{"hard":{"count/machines.cluster.x-k8s.io":"5","pods":"cluster.x-k8s.io"}},"status":{"used":{"count/machines.cluster.x-k8s.io":"1"}}}"#,
    },
    Row {
        name: "an APIService's name has the version first",
        root: Node::Document(Shape::ApiService),
        private: r#"{"metadata":{"name":"v1beta2.cluster.hypershift.openshift.io"},"spec":{"group":"cluster.hypershift.openshift.io","version":"v1beta2"}}"#,
        standard: r#"{"metadata":{"name":"v1beta2.cluster.x-k8s.io"},"spec":{"group":"cluster.x-k8s.io","version":"v1beta2"}}"#,
    },
    Row {
        name: "r21 a Table of CRDs: the name cell and the rows' objects",
        root: Node::Document(Shape::Crd),
        private: r#"{"kind":"Table","rows":[{"cells":["machines.cluster.hypershift.openshift.io","2026-01-01T00:00:00Z"],"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"machines.cluster.hypershift.openshift.io"}}}]}"#,
        standard: r#"{"kind":"Table","rows":[{"cells":["machines.cluster.x-k8s.io","2026-01-01T00:00:00Z"],"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"machines.cluster.x-k8s.io"}}}]}"#,
    },
    Row {
        name: "admission reviews",
        root: Node::AdmissionReview,
        private: r#"{"request":{"kind":{"group":"cluster.hypershift.openshift.io"},"requestResource":{"group":"cluster.hypershift.openshift.io"},"object":{"apiVersion":"cluster.hypershift.openshift.io/v1beta2"}}}"#,
        standard: r#"{"request":{"kind":{"group":"cluster.x-k8s.io"},"requestResource":{"group":"cluster.x-k8s.io"},"object":{"apiVersion":"cluster.x-k8s.io/v1beta2"}}}"#,
    },
    Row {
        name: "conversion reviews",
        root: Node::ConversionReview,
        private: r#"{"request":{"desiredAPIVersion":"cluster.hypershift.openshift.io/v1beta1","objects":[{"apiVersion":"cluster.hypershift.openshift.io/v1beta2"}]}}"#,
        standard: r#"{"request":{"desiredAPIVersion":"cluster.x-k8s.io/v1beta1","objects":[{"apiVersion":"cluster.x-k8s.io/v1beta2"}]}}"#,
    },
];

#[test]
fn every_field_with_a_group_is_translated_both_ways() {
    for row in ROWS {
        assert_eq!(
            swap(row.root, row.private),
            row.standard,
            "down: {}",
            row.name
        );
        assert_eq!(
            swap(row.root, row.standard),
            row.private,
            "up: {}",
            row.name
        );
    }
}

/// Check R20.
#[test]
fn status_messages_and_details_are_translated() {
    let private = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"machines.cluster.hypershift.openshift.io \"x\" not found","reason":"NotFound","details":{"name":"x","group":"cluster.hypershift.openshift.io","kind":"machines","causes":[{"message":"in cluster.hypershift.openshift.io/v1beta2"}]},"code":404}"#;
    let standard = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"machines.cluster.x-k8s.io \"x\" not found","reason":"NotFound","details":{"name":"x","group":"cluster.x-k8s.io","kind":"machines","causes":[{"message":"in cluster.x-k8s.io/v1beta2"}]},"code":404}"#;
    assert_eq!(swap(PLAIN, private), standard);
    let request = translate(PLAIN, Direction::Request, &[private.as_bytes()]).unwrap();
    assert_eq!(
        request,
        private.as_bytes(),
        "free text and details stay in requests"
    );
    let custom = r#"{"kind":"Status","apiVersion":"example.com/v1","message":"cluster.hypershift.openshift.io/v1"}"#;
    assert_eq!(
        swap(PLAIN, custom),
        custom,
        "a custom kind of that name is no metav1.Status"
    );
}

/// Check R20.
#[test]
fn crd_names_in_errors_are_translated() {
    let private = r#"{"kind":"Status","apiVersion":"v1","details":{"name":"machines.cluster.hypershift.openshift.io","group":"apiextensions.k8s.io"}}"#;
    assert!(
        swap(Node::Document(Shape::Crd), private).contains(r#""name":"machines.cluster.x-k8s.io""#)
    );
    assert_eq!(swap(PLAIN, private), private);
}

/// Checks W04, W05.
#[test]
fn watch_events_bookmarks_and_errors_are_translated() {
    let events = [
        (
            r#"{"type":"ADDED","object":{"apiVersion":"cluster.hypershift.openshift.io/v1beta2","kind":"Machine"}}"#,
            r#"{"type":"ADDED","object":{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Machine"}}"#,
        ),
        (
            r#"{"type":"BOOKMARK","object":{"kind":"Machine","apiVersion":"cluster.hypershift.openshift.io/v1beta2","metadata":{"annotations":{"k8s.io/initial-events-end":"true"}}}}"#,
            r#"{"type":"BOOKMARK","object":{"kind":"Machine","apiVersion":"cluster.x-k8s.io/v1beta2","metadata":{"annotations":{"k8s.io/initial-events-end":"true"}}}}"#,
        ),
        (
            r#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","message":"too old: machines.cluster.hypershift.openshift.io","details":{"group":"cluster.hypershift.openshift.io"},"code":410}}"#,
            r#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","message":"too old: machines.cluster.x-k8s.io","details":{"group":"cluster.x-k8s.io"},"code":410}}"#,
        ),
    ];
    let root = Node::WatchEvent(Shape::Plain);
    let mut json = Json::new(
        &Rules::default(),
        Direction::Response,
        Documents::Many,
        root,
    );
    for (private, standard) in events {
        let mut out = Vec::new();
        json.push(private.as_bytes(), &mut out).unwrap();
        json.push(b"\n", &mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            format!("{standard}\n"),
            "an event leaves with its last byte"
        );
    }
    json.finish(&mut Vec::new()).unwrap();
}

/// Check R09.
#[test]
fn a_long_annotation_is_streamed() {
    let long = "x".repeat(900 * 1024);
    let body = format!(
        r#"{{"metadata":{{"annotations":{{"cluster.x-k8s.io/conversion-data":"{{\"apiVersion\":\"cluster.x-k8s.io/v1beta1\",\"d\":\"{long}\"}}"}}}},"apiVersion":"cluster.x-k8s.io/v1beta2"}}"#
    );
    let mut json = Json::new(&Rules::default(), Direction::Request, Documents::One, PLAIN);
    let mut out = Vec::new();
    for chunk in body.as_bytes().chunks(8 * 1024) {
        json.push(chunk, &mut out).unwrap();
        assert!(
            json.held.capacity() <= 64 * 1024,
            "held {}",
            json.held.capacity()
        );
    }
    json.finish(&mut out).unwrap();
    let expected = body.replace(
        r#""apiVersion":"cluster.x-k8s.io/v1beta2"}"#,
        r#""apiVersion":"cluster.hypershift.openshift.io/v1beta2"}"#,
    );
    assert!(out == expected.as_bytes());
}

#[test]
fn long_text_is_translated_in_pieces() {
    let words = "machines.cluster.hypershift.openshift.io \\\"x\\\" not found; ".repeat(3000);
    let body = format!(r#"{{"kind":"Status","apiVersion":"v1","message":"{words}"}}"#);
    for size in [1000, 70_000, body.len()] {
        let chunks: Vec<_> = body.as_bytes().chunks(size).collect();
        let out = translate(PLAIN, Direction::Response, &chunks).unwrap();
        assert!(
            out == body.replace("hypershift.openshift", "x-k8s").as_bytes(),
            "in chunks of {size}"
        );
    }
}

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

fn with_last_applied(text: &str) -> Vec<u8> {
    let object =
        serde_json::json!({"metadata": {"annotations": {LAST_APPLIED: text, "other": text}}});
    serde_json::to_vec(&object).unwrap()
}

fn last_applied(body: &[u8]) -> String {
    let object: Value = serde_json::from_slice(body).unwrap();
    let text = &object["metadata"]["annotations"][LAST_APPLIED];
    text.as_str().unwrap().to_owned()
}

/// Check F07: the API server writes this annotation itself after a server-side apply, with the names that it knows.
#[test]
fn last_applied_of_the_server_has_standard_names() {
    let filler = "x".repeat(50);
    let owner = format!(
        r#"{{"apiVersion":"cluster.x-k8s.io/v1beta2","uid":"{filler}","apiGroup":"infrastructure.cluster.x-k8s.io"}},"#
    );
    for count in [1, 1000] {
        let owners = owner.repeat(count);
        let standard = format!(
            r#"{{"apiVersion":"cluster.x-k8s.io/v1beta2","metadata":{{"labels":{{"cluster.x-k8s.io/cluster-name":"c"}},"ownerReferences":[{owners}{{}}]}}}}"#
        );
        let stored = swap(PLAIN, &standard);
        assert!(stored.contains("cluster.hypershift.openshift.io/v1beta2"));
        let body = with_last_applied(&stored);
        for size in [1, 7, 1000, body.len()] {
            let chunks: Vec<_> = body.chunks(size).collect();
            let out = translate(PLAIN, Direction::Response, &chunks).unwrap();
            assert_eq!(last_applied(&out), standard, "in chunks of {size}");
            let object: Value = serde_json::from_slice(&out).unwrap();
            assert_eq!(object["metadata"]["annotations"]["other"], *stored);
            // Nothing that a client sends is free text of the server.
            let sent = translate(PLAIN, Direction::Request, &chunks).unwrap();
            assert!(sent == body, "in chunks of {size}");
        }
    }
}

/// Check R28.
#[test]
fn escaped_names_and_keys_are_translated() {
    let escaped =
        r#"{"api\u0056ersion":"cluster.x\u002dk8s.io\/v1beta2","x":"\ud83d\ude00\u0041"}"#;
    let expected =
        r#"{"api\u0056ersion":"cluster.hypershift.openshift.io/v1beta2","x":"\ud83d\ude00\u0041"}"#;
    assert_eq!(swap(PLAIN, escaped), expected);
    let back: Value = serde_json::from_str(&swap(PLAIN, expected)).unwrap();
    assert_eq!(back, serde_json::from_str::<Value>(escaped).unwrap());
}

/// Check R29.
#[test]
fn invalid_and_oversized_json_is_rejected() {
    let deep = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert_eq!(swap(PLAIN, &deep(MAX_DEPTH)), deep(MAX_DEPTH));
    let too_deep =
        translate(PLAIN, Direction::Request, &[deep(MAX_DEPTH + 1).as_bytes()]).unwrap_err();
    assert_eq!(too_deep.code, 413);
    let bad: &[&[u8]] = &[
        b"\xef\xbb\xbf{}",
        b"{\"a\":\0}",
        b"{\"a\":\"\x00\"}",
        b"{",
        b"{]",
        b"[}",
        b"{}{}",
        b"{\"a\" 1}",
        b"{\"a\":1,}",
        b"[1,]",
        b"{,}",
        b"tru",
        b"truE",
        b"nul1",
        b"01",
        b"1.",
        b"-",
        b"1e",
        b"+1",
        b"\"\\x\"",
        b"\"\\u12g4\"",
        b"\"",
        b"{\"a\"}",
        b"{a:1}",
        b"'a'",
        b"[1 2]",
        b"{\"a\":1 \"b\":2}",
        b"\xff",
        b"{\"apiVersion\":\"cluster.x-k8s.io/v1\"",
        b"]",
    ];
    for body in bad {
        let refused = translate(PLAIN, Direction::Request, &[body]);
        assert!(
            refused.is_err(),
            "{:?} gave {:?}",
            String::from_utf8_lossy(body),
            refused
        );
    }
    for fine in [
        "",
        " ",
        "1",
        "-0.5e-10",
        "\"a\"",
        "null",
        "[]",
        "{\"a\":\"\\ud800\"}",
        "123456789012345678901234567890e400",
    ] {
        assert_eq!(swap(PLAIN, fine), fine);
    }
    let twice = r#"{"apiVersion":"cluster.x-k8s.io/v1","apiVersion":"ipam.cluster.x-k8s.io/v1"}"#;
    assert_eq!(
        swap(PLAIN, twice).matches("hypershift").count(),
        2,
        "each of two equal keys is swapped"
    );
}

/// Check R30.
#[test]
fn every_chunk_boundary_gives_the_same_bytes() {
    for row in ROWS {
        let bytes = row.private.as_bytes();
        for cut in 0..=bytes.len() {
            let out = translate(
                row.root,
                Direction::Response,
                &[&bytes[..cut], &bytes[cut..]],
            )
            .unwrap();
            assert!(out == row.standard.as_bytes(), "{} cut at {cut}", row.name);
        }
        let single: Vec<_> = bytes.chunks(1).collect();
        assert!(
            translate(row.root, Direction::Response, &single).unwrap() == row.standard.as_bytes(),
            "{}",
            row.name
        );
    }
}

#[test]
fn the_leak_check_counts_untranslated_private_names() {
    let rules = Rules::default().checking_leaks();
    let leaks = |body: &str| {
        let mut json = Json::new(&rules, Direction::Response, Documents::One, PLAIN);
        let mut out = Vec::new();
        json.push(body.as_bytes(), &mut out).unwrap();
        json.finish(&mut out).unwrap();
        (json.counts().leaks, String::from_utf8(out).unwrap())
    };
    for row in ROWS.iter().filter(|row| row.root == PLAIN) {
        assert_eq!(
            leaks(row.private),
            (0, row.standard.to_owned()),
            "{}",
            row.name
        );
    }
    let (count, _) = leaks(
        r#"{"status":{"x":"in cluster.hypershift.openshift.io","y":["a",{"z":"cluster.hypershift.openshift.io/v1"}]}}"#,
    );
    assert_eq!(count, 2);
    let (denied, _) = leaks(r#"{"metadata":{"labels":{"x":"cluster.hypershift.openshift.io"}}}"#);
    assert_eq!(denied, 0);
    let (crosswise, _) = leaks(r#"{"apiVersion":"cluster.x-k8s.io/v1"}"#);
    assert_eq!(
        crosswise, 0,
        "the platform's own names are meant to appear crosswise"
    );
}
