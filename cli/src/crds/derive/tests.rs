//! Derivation of small CRDs: what changes, what stays, and what is refused.

use serde_json::json;

use super::*;

/// A CRD of the infrastructure group, complete enough for every rule.
fn widget() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "annotations": {"cert-manager.io/inject-ca-from": "a/b"},
            "labels": {"cluster.x-k8s.io/v1beta1": "v1beta1"},
            "name": "widgets.infrastructure.cluster.x-k8s.io",
            "uid": "1",
        },
        "spec": {
            "group": "infrastructure.cluster.x-k8s.io",
            "names": {
                "categories": ["cluster-api"],
                "kind": "Widget",
                "listKind": "WidgetList",
                "plural": "widgets",
                "shortNames": ["w"],
                "singular": "widget",
            },
            "scope": "Namespaced",
            "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"]}},
            "versions": [{
                "name": "v1beta1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": {
                    "description": "refers to infrastructure.cluster.x-k8s.io",
                    "properties": {"z": {"type": "string"}, "a": {"type": "string"}},
                    "type": "object",
                    "x-kubernetes-validations": [{"rule": "self.a != 'cluster.x-k8s.io'"}],
                }},
                "subresources": {"status": {}},
            }],
        },
        "status": {"storedVersions": ["v1beta1"]},
    })
}

fn derivation() -> Derivation {
    Derivation::new(GroupTable::default())
}

fn run(derivation: &Derivation, value: Value) -> Result<Value, Error> {
    derivation
        .run(vec![Batch::of_values("test", vec![value])])
        .map(|mut derived| derived.crds.remove(0))
}

fn refusal(derivation: &Derivation, value: Value) -> Refusal {
    match run(derivation, value) {
        Err(Error::Refused { refusal, .. }) => *refusal,
        other => panic!("not refused: {other:?}"),
    }
}

/// The widget with one field changed.
fn with(path: &str, value: Value) -> Value {
    let mut widget = widget();
    *widget.pointer_mut(path).unwrap() = value;
    widget
}

/// The same as a kind that Cluster API looks up by contract.
fn machine(mut widget: Value) -> Value {
    widget["metadata"]["name"] = json!("widgetmachines.infrastructure.cluster.x-k8s.io");
    widget["spec"]["names"]["kind"] = json!("WidgetMachine");
    widget["spec"]["names"]["plural"] = json!("widgetmachines");
    widget
}

/// F13: OpenStack's module has kinds whose label names a version that they do not serve.
#[test]
fn a_wrong_label_of_a_kind_without_contract_is_a_warning() {
    let labels = json!({"cluster.x-k8s.io/v1beta1": "v1beta1_v1beta2"});
    let batch = Batch::of_values("test", vec![with("/metadata/labels", labels)]);
    let derived = derivation().run(vec![batch]).unwrap();
    assert_eq!(derived.crds.len(), 1);
    let [warning] = &derived.warnings[..] else {
        panic!("{:?}", derived.warnings);
    };
    let text = warning.to_string();
    assert!(
        text.starts_with("widgets.infrastructure.cluster.hypershift"),
        "{text}"
    );
    assert!(text.contains("v1beta2"), "{text}");
    assert_eq!(run(&derivation(), widget()).unwrap()["kind"], CRD_KIND);
}

#[test]
fn changes_group_name_and_conversion_and_nothing_else() {
    let derived = run(&derivation(), widget()).unwrap();
    let expected = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "labels": {"cluster.x-k8s.io/v1beta1": "v1beta1"},
            "name": "widgets.infrastructure.cluster.hypershift.openshift.io",
        },
        "spec": {
            "conversion": {"strategy": "None"},
            "group": "infrastructure.cluster.hypershift.openshift.io",
            "names": {
                "kind": "Widget",
                "listKind": "WidgetList",
                "plural": "widgets",
                "singular": "widget",
            },
            "scope": "Namespaced",
            "versions": widget()["spec"]["versions"],
        },
    });
    // As text, because the order of fields is part of the promise.
    assert_eq!(derived.to_string(), expected.to_string());
}

#[test]
fn strips_descriptions_of_schemas_on_request() {
    let mut derivation = derivation();
    derivation.descriptions = Descriptions::Strip;
    let derived = run(&derivation, widget()).unwrap();
    let schema = &derived["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    assert_eq!(schema["description"], Value::Null);
    assert_eq!(schema["type"], "object");
}

#[test]
fn refuses_what_it_cannot_do_right() {
    let field = |field| Refusal::Malformed { field };
    let table = [
        (with("/kind", json!(null)), Refusal::NotAnObject),
        (json!("text"), Refusal::NotAnObject),
        (
            with("/apiVersion", json!("apiextensions.k8s.io/v1beta1")),
            Refusal::OldApi {
                api_version: "apiextensions.k8s.io/v1beta1".to_owned(),
            },
        ),
        (
            with(
                "/spec/group",
                json!("infrastructure.cluster.hypershift.openshift.io"),
            ),
            Refusal::AlreadyPrivate {
                group: "infrastructure.cluster.hypershift.openshift.io".to_owned(),
                standard: "infrastructure.cluster.x-k8s.io".to_owned(),
            },
        ),
        (with("/spec/group", json!(1)), field("spec.group")),
        (with("/spec/names", json!({})), field("spec.names.kind")),
        (with("/spec/versions", json!({})), field("spec.versions")),
        (with("/spec/versions", json!([])), Refusal::NoStorageVersion),
        (
            with("/spec/names/kind", json!("Gadget")),
            Refusal::Plural {
                kind: "Gadget".to_owned(),
                plural: "widgets".to_owned(),
                expected: "gadgets".to_owned(),
            },
        ),
        (
            with("/metadata/name", json!("widgets.cluster.x-k8s.io")),
            Refusal::Name {
                expected: "widgets.infrastructure.cluster.x-k8s.io".to_owned(),
            },
        ),
        (
            with("/metadata/labels", json!({})),
            Refusal::ContractLabelMissing,
        ),
        (
            with(
                "/metadata/labels",
                json!({"cluster.x-k8s.io/provider": "x"}),
            ),
            Refusal::ContractLabelMissing,
        ),
        (
            machine(with(
                "/metadata/labels",
                json!({"cluster.x-k8s.io/v1beta2": "v1beta2"}),
            )),
            Refusal::ContractVersionNotServed {
                label: "cluster.x-k8s.io/v1beta2".to_owned(),
                version: "v1beta2".to_owned(),
                served: "v1beta1".to_owned(),
            },
        ),
        (
            with(
                "/metadata",
                json!({"name": "w", "deletionTimestamp": "2026-01-01T00:00:00Z"}),
            ),
            Refusal::BeingDeleted,
        ),
        (
            with("/spec/conversion", json!(null)),
            Refusal::PreservesUnknownFields,
        ),
    ];
    for (mut value, expected) in table {
        if expected == Refusal::PreservesUnknownFields {
            value["spec"]["preserveUnknownFields"] = json!(true);
        }
        let text = value.to_string();
        assert_eq!(refusal(&derivation(), value), expected, "{text}");
    }
}

#[test]
fn gives_contract_labels_only_to_crds_that_lack_them() {
    let mut derivation = derivation();
    derivation.contract_labels = vec!["cluster.x-k8s.io/v1beta2=v1beta1".parse().unwrap()];
    let labels = |value| run(&derivation, value).unwrap()["metadata"]["labels"].clone();
    assert_eq!(
        labels(widget()),
        json!({"cluster.x-k8s.io/v1beta1": "v1beta1"})
    );
    assert_eq!(
        labels(with("/metadata/labels", json!({"kept": "yes"}))),
        json!({"kept": "yes", "cluster.x-k8s.io/v1beta2": "v1beta1"})
    );
    let mut without = widget();
    without["metadata"] = json!({"name": "widgets.infrastructure.cluster.x-k8s.io"});
    assert_eq!(
        labels(without),
        json!({"cluster.x-k8s.io/v1beta2": "v1beta1"})
    );
}

#[test]
fn leaves_other_documents_out_only_beside_a_crd() {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
    let unpaired = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "providers.clusterctl.cluster.x-k8s.io"},
        "spec": {"group": "clusterctl.cluster.x-k8s.io"},
    });
    let batch = Batch::of_values(
        "m.yaml",
        vec![namespace.clone(), widget(), unpaired.clone()],
    );
    let derived = derivation().run(vec![batch]).unwrap();
    assert_eq!(derived.crds.len(), 1);
    let notes: Vec<_> = derived.skipped.iter().map(ToString::to_string).collect();
    assert_eq!(notes[0], "Namespace n is not a CustomResourceDefinition");
    assert!(
        notes[1].contains("group clusterctl.cluster.x-k8s.io"),
        "{notes:?}"
    );

    for (values, words) in [
        (
            vec![namespace],
            "Namespace n is not a CustomResourceDefinition",
        ),
        (vec![unpaired], "has no private group"),
        (vec![], "it is empty"),
    ] {
        let good = Batch::of_values("good.yaml", vec![widget()]);
        let bad = Batch::of_values("bad.yaml", values);
        let error = derivation().run(vec![good, bad]).unwrap_err().to_string();
        assert!(
            error.starts_with("bad.yaml holds no CRD") && error.contains(words),
            "{error}"
        );
    }
}

#[test]
fn a_crd_comes_from_one_source() {
    let batches = ["a.yaml", "b.yaml"].map(|name| Batch::of_values(name, vec![widget()]));
    let error = derivation().run(batches.into()).unwrap_err().to_string();
    assert_eq!(
        error,
        "widgets.infrastructure.cluster.hypershift.openshift.io comes twice, from a.yaml, document 1 and from b.yaml, \
         document 1: name one source for it"
    );
}

#[test]
fn configured_pairs_are_derived_too() {
    let mut derivation = derivation();
    derivation.table = derivation
        .table
        .with(
            "agent.example.com=agent.private.example.com"
                .parse()
                .unwrap(),
        )
        .unwrap();
    let mut agent = widget();
    agent["metadata"]["name"] = json!("widgets.agent.example.com");
    agent["spec"]["group"] = json!("agent.example.com");
    let derived = run(&derivation, agent).unwrap();
    assert_eq!(
        derived["metadata"]["name"],
        "widgets.agent.private.example.com"
    );
}
