//! Operands that are missing, outdated, or not rolled out yet.

use serde_json::{Value, json};

use super::*;
use crate::facts::Infra;
use crate::settings::Settings;
use crate::{Objects, Predicates, Release};

const NEW: &str = "registry.example.com/ovn@sha256:2";
const OLD: &str = "registry.example.com/ovn@sha256:1";
const NETWORK: Operand = Operand::new("ovnkube-control-plane", "ovn-kubernetes");

/// A Deployment with two ready replicas.
fn deployment(name: &str, changes: &[(&str, Value)]) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": name, "generation": 3, "labels": {}, "annotations": {} },
        "spec": {
            "replicas": 2, "selector": {},
            "template": { "spec": { "containers": [
                { "name": "first", "image": OLD }, { "name": name, "image": NEW },
            ] } },
        },
        "status": {
            "observedGeneration": 3, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2,
            "availableReplicas": 2,
        },
    });
    for (path, value) in changes {
        *object.pointer_mut(path).unwrap() = value.clone();
    }
    object
}

/// What the component waits for with these objects.
fn waits(operands: Operands, objects: impl IntoIterator<Item = Value>) -> Vec<String> {
    let text = include_str!("../../tests/data/base/hosted-control-plane.yaml");
    let hcp = serde_saphyr::from_str(text).unwrap();
    let release = Release {
        version: "4.20.1".to_owned(),
        images: [("ovn-kubernetes".to_owned(), NEW.to_owned())].into(),
        ..Release::default()
    };
    let context = Context {
        hcp: &hcp,
        release: &release,
        user_release: &Release::default(),
        infra: &Infra::default(),
        objects: &Objects::from_iter(objects),
        settings: &Settings::new("own"),
        predicates: Predicates::Evaluated,
    };
    let component = Component::new("network", &[]).operands(operands);
    waiting(&component, &context)
}

#[test]
fn named_operands_must_run_the_release() {
    let name = NETWORK.deployment;
    let image = "/spec/template/spec/containers/1/image";
    let container = "/spec/template/spec/containers/1/name";
    for (case, live, expected) in [
        (
            "missing",
            None,
            Some("Deployment ovnkube-control-plane does not exist"),
        ),
        ("complete", Some(deployment(name, &[])), None),
        (
            "outdated",
            Some(deployment(name, &[(image, json!(OLD))])),
            Some(
                "Deployment ovnkube-control-plane runs registry.example.com/ovn@sha256:1 instead of \
                 registry.example.com/ovn@sha256:2",
            ),
        ),
        (
            "without its container",
            Some(deployment(name, &[(container, json!("other"))])),
            Some("Deployment ovnkube-control-plane has no container ovnkube-control-plane"),
        ),
        (
            "rolling out",
            Some(deployment(name, &[("/status/updatedReplicas", json!(1))])),
            Some("Deployment ovnkube-control-plane: 1/2 replicas updated"),
        ),
        (
            "not observed",
            Some(deployment(name, &[("/metadata/generation", json!(4))])),
            Some("Deployment ovnkube-control-plane: the new generation is not observed yet"),
        ),
    ] {
        let found = waits(Operands::Named(|_| vec![NETWORK]), live);
        assert_eq!(found, Vec::from_iter(expected), "{case}");
    }
}

#[test]
fn all_problems_of_operands_are_named() {
    let operands = Operands::Named(|_| {
        vec![
            NETWORK.container("first"),
            Operand::new("multus", "ovn-kubernetes"),
            Operand::new("console", "networking-console-plugin"),
        ]
    });
    let found = waits(operands, [deployment(NETWORK.deployment, &[])]);
    assert!(found[0].contains(OLD), "{found:?}");
    assert_eq!(found[1], "Deployment multus does not exist");
    assert!(found[2].contains("no image networking-console-plugin"));
}

#[test]
fn labeled_operands_must_have_the_version_of_the_release() {
    let labeled = |component: &str, version: &str| {
        let labels = json!({ MANAGED_BY: component });
        let annotations = json!({ VERSION: version });
        let changes = [
            ("/metadata/labels", labels),
            ("/metadata/annotations", annotations),
        ];
        deployment("operand", &changes)
    };
    let old = "Deployment operand has 4.20.0 instead of 4.20.1";
    let none = "Deployment operand has no version instead of 4.20.1";
    let unlabeled = deployment("operand", &[]);
    let mut unversioned = labeled("network", "");
    unversioned["metadata"]["annotations"] = json!({});
    let mut unready = labeled("network", "4.20.1");
    unready["status"]["readyReplicas"] = json!(0);
    for (case, live, expected) in [
        ("complete", labeled("network", "4.20.1"), None),
        ("outdated", labeled("network", "4.20.0"), Some(old)),
        ("of another component", labeled("storage", "4.20.0"), None),
        ("of no component", unlabeled, None),
        ("without a version", unversioned, Some(none)),
        (
            "unready",
            unready,
            Some("Deployment operand: 0/2 replicas ready"),
        ),
    ] {
        let found = waits(Operands::Labeled, [live]);
        assert_eq!(found, Vec::from_iter(expected), "{case}");
    }
    assert_eq!(waits(Operands::None, []), [""; 0]);
}
