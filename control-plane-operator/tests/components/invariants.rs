//! What holds of the pods of every component, on every platform, before a cluster runs them.

use std::collections::BTreeSet;

use control_plane_operator::components;
use control_plane_operator::render::Input;
use invariants::{Invariant, Observed, findings};
use serde_json::{Value, json};

use crate::pod_security::variants;
use crate::variants::changed;

/// The priority classes of an installation.
const CLASSES: [(&str, u32); 3] = [
    ("hypershift-api-critical", 100_001_000),
    ("hypershift-control-plane", 100_000_000),
    ("hypershift-etcd", 100_002_000),
];
const USER: i64 = 1005;
/// What only a cluster that runs has.
const OF_STATUS: [Invariant; 2] = [Invariant::ClusterConditions, Invariant::PayloadArchitecture];

/// Control planes that differ in their pods.
fn inputs() -> Vec<(&'static str, Input)> {
    let platform = |platform: &str| changed(&[("/spec/platform/type", json!(platform))]);
    let mut all = variants();
    let others = ["Azure", "KubeVirt", "PowerVS", "IBMCloud"];
    all.extend(others.map(|it| (it, platform(it))));
    all.push((
        "labels and tolerations",
        changed(&[
            ("/spec/labels", json!({ "team": "a" })),
            (
                "/spec/tolerations",
                json!([{ "key": "team", "operator": "Exists" }]),
            ),
        ]),
    ));
    all
}

/// The components that can be rendered: those of other platforms need their fields.
fn rendered(input: &Input) -> (BTreeSet<&'static str>, Vec<Value>) {
    let mut names = BTreeSet::new();
    let mut objects = Vec::new();
    for component in components::all() {
        if let Ok(files) = input.component(component) {
            names.insert(component.name);
            objects.extend(files.into_iter().map(|file| file.object));
        }
    }
    (names, objects)
}

/// The cluster as its HostedControlPlane says; nothing of it runs.
fn observed(input: &Input, objects: Vec<Value>) -> Observed {
    let hcp = &input.hosted_control_plane;
    let namespace = hcp.metadata.namespace.as_deref().unwrap_or_default();
    let class =
        |(name, value): (&str, u32)| json!({ "metadata": { "name": name }, "value": value });
    Observed {
        hosted_cluster: Some(json!({ "metadata": { "name": "rendered" }, "spec": hcp.spec })),
        namespace: json!({ "metadata": {
            "name": namespace,
            "annotations": { "hypershift.openshift.io/default-security-context-uid": USER.to_string() },
        }}),
        objects,
        priority_classes: CLASSES.map(class).into(),
        ..Observed::default()
    }
}

/// Check T23.
#[test]
fn invariants_hold_of_all_rendered_components() {
    let mut seen = BTreeSet::new();
    for (name, mut input) in inputs() {
        input.settings.uid = Some(USER);
        let (components, objects) = rendered(&input);
        assert!(components.len() > 35, "{name}: {}", components.len());
        let found = findings(&observed(&input, objects)).into_iter();
        let found: Vec<_> = found
            .filter(|it| !OF_STATUS.contains(&it.invariant))
            .map(|it| it.to_string())
            .collect();
        assert!(found.is_empty(), "{name}: {found:#?}");
        seen.extend(components);
    }
    assert_eq!(seen.len(), components::all().len(), "{seen:?}");
}
