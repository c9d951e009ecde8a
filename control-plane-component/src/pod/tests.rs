//! Pod settings by component declaration and hosted control plane.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::asset::Asset;
use crate::facts::Infra;
use crate::render::render;
use crate::settings::Settings;
use crate::{CapiUse, Minter, Predicates, Prober, Release, TokenFrom};

static DEPLOYMENT: [Asset; 1] = [Asset::new(
    "deployment.yaml",
    "
apiVersion: apps/v1
kind: Deployment
metadata: { name: router }
spec:
  selector: { matchLabels: { app: a } }
  template:
    metadata: { labels: { app: a } }
    spec:
      containers: [{ name: main, image: registry.example.com/a }]
      volumes:
        - { name: config, configMap: { name: c } }
        - { name: kubeconfig, secret: { secretName: k } }
",
)];

/// Renders the workload of a component for a changed hosted control plane.
fn rendered(
    component: impl FnOnce(Component) -> Component,
    changes: &[(&str, Value)],
    objects: Vec<Value>,
) -> Value {
    attempt(component, changes, objects).unwrap()
}

fn attempt(
    component: impl FnOnce(Component) -> Component,
    changes: &[(&str, Value)],
    objects: Vec<Value>,
) -> Result<Value> {
    let text = include_str!("../../tests/data/base/hosted-control-plane.yaml");
    let mut hcp: Value = serde_saphyr::from_str(text).unwrap();
    for (path, value) in changes {
        let (field, key) = path.split_once('/').unwrap();
        hcp[field][key] = value.clone();
    }
    let hcp = serde_json::from_value(hcp).unwrap();
    let settings = Settings {
        own_image: "registry.example.com/own".to_owned(),
        capi_types: api::group::CapiTypes::Private,
        capi_proxy_image: Some("registry.example.com/proxy".to_owned()),
        uid: Some(1001),
        ..Settings::new("own")
    };
    let release = Release::default().with_overrides(&settings.own_image, &BTreeMap::new());
    let objects = Objects::from_iter(objects);
    let context = Context {
        hcp: &hcp,
        release: &release,
        user_release: &release,
        infra: &Infra::default(),
        objects: &objects,
        settings: &settings,
        predicates: Predicates::Evaluated,
    };
    let component = component(Component::new("router", &DEPLOYMENT).api_critical());
    Ok(render(&component, &context)?.workload.unwrap())
}

fn pod(workload: &Value) -> &Value {
    &workload["spec"]["template"]["spec"]
}

#[test]
fn replicas_and_strategy_follow_availability_policy() {
    let dedicated =
        json!({ "hypershift.openshift.io/topology": "dedicated-request-serving-components" });
    let debugged = json!({ "hypershift.openshift.io/debug-deployments": "x,router" });
    for (name, changes, replicas, strategy) in [
        (
            "highly available",
            vec![],
            3,
            json!({ "maxSurge": 0, "maxUnavailable": 1 }),
        ),
        (
            "single",
            vec![("spec/controllerAvailabilityPolicy", json!("SingleReplica"))],
            1,
            Value::Null,
        ),
        (
            "dedicated",
            vec![("metadata/annotations", dedicated)],
            2,
            json!({ "maxSurge": 1, "maxUnavailable": 1 }),
        ),
        (
            "debugged",
            vec![("metadata/annotations", debugged)],
            0,
            Value::Null,
        ),
    ] {
        let workload = rendered(Component::request_serving, &changes, Vec::new());
        assert_eq!(workload["spec"]["replicas"], replicas, "{name}");
        assert_eq!(
            workload["spec"]["strategy"]["rollingUpdate"], strategy,
            "{name}"
        );
    }
}

#[test]
fn changed_config_rolls_out_new_pods() {
    let config = |value: &str| json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "c" }, "data": { "a": value } });
    let hash = |objects| {
        let workload = rendered(|component| component, &[], objects);
        workload["spec"]["template"]["metadata"]["annotations"][config_hash::KEY].clone()
    };
    assert_ne!(hash(vec![config("1")]), hash(vec![config("2")]));
    let mut other = config("2");
    other["metadata"]["name"] = json!("not-mounted");
    assert_eq!(hash(vec![config("1")]), hash(vec![config("1"), other]));
}

#[test]
fn pods_are_hardened_and_mount_tokens_only_if_needed() {
    for (management, expected) in [(false, false), (true, true)] {
        let workload = rendered(
            |component| {
                if management {
                    component.management_api()
                } else {
                    component
                }
            },
            &[],
            Vec::new(),
        );
        let pod = pod(&workload);
        assert_eq!(pod["automountServiceAccountToken"], expected);
        assert_eq!(pod["securityContext"]["runAsUser"], 1001);
        let violations = support::testing::restricted_violations(pod);
        assert_eq!(violations, Vec::<String>::new());
        assert_eq!(
            pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"],
            true
        );
        assert_eq!(pod["containers"][0]["volumeMounts"][0]["mountPath"], "/tmp");
        assert_eq!(pod["volumes"][1]["secret"]["defaultMode"], 0o640);
    }
}

#[test]
fn live_resource_requests_are_kept_unless_overridden() {
    let mut live: Value = serde_saphyr::from_str(DEPLOYMENT[0].yaml).unwrap();
    live["spec"]["template"]["spec"]["containers"][0]["resources"] =
        json!({ "requests": { "cpu": "7" } });
    let cpu = |changes: &[(&str, Value)], live: Vec<Value>| {
        let workload = rendered(|component| component, changes, live);
        pod(&workload)["containers"][0]["resources"]["requests"]["cpu"].clone()
    };
    assert_eq!(cpu(&[], vec![live.clone()]), "7");
    let key = "resource-request-override.hypershift.openshift.io/router.main";
    let overrides = [("metadata/annotations", json!({ key: "cpu=9,memory=1Gi" }))];
    assert_eq!(cpu(&overrides, vec![live]), "9");
}

/// A component with all helper containers.
fn with_helpers() -> Value {
    rendered(
        |component| {
            component
                .management_api()
                .uses_capi(CapiUse::Proxied)
                .prober(Prober::default())
                .minter(Minter {
                    for_: crate::declaration::TokenFor::Cloud,
                    namespace: "kube-system",
                    name: "a",
                    kubeconfig: TokenFrom::Volume("kubeconfig"),
                    oneshot: false,
                })
        },
        &[],
        Vec::new(),
    )
}

#[test]
fn init_containers_are_added_in_order() {
    let workload = with_helpers();
    let names: Vec<_> = pod(&workload)["initContainers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|container| container["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "kube-apiserver-proxy",
            "availability-prober",
            "cloud-token-minter"
        ]
    );
}

/// Check F03: the hosted API server of a new cluster starts much later than the pod.
#[test]
fn token_minters_are_not_restarted_while_they_wait() {
    let workload = with_helpers();
    let minter = &pod(&workload)["initContainers"][2];
    assert_eq!(minter["name"], "cloud-token-minter");
    assert_eq!(minter["restartPolicy"], "Always");
    let probe = &minter["startupProbe"];
    let seconds = |field: &str| probe[field].as_i64().unwrap();
    assert!(seconds("periodSeconds") * seconds("failureThreshold") >= 1800);
}

#[test]
fn invalid_annotations_are_errors_with_a_hint() {
    let key = "resource-request-override.hypershift.openshift.io/router";
    let overrides = [("metadata/annotations", json!({ key: "much" }))];
    let error = attempt(|component| component, &overrides, Vec::new()).unwrap_err();
    let text = error.to_string();
    assert!(text.contains(key) && text.contains("write "), "{text}");
}

/// Check T10: users cannot set labels that NetworkPolicies and Services select by, and those of the manifest stay.
#[test]
fn user_labels_cannot_override_selector_labels() {
    let labels = json!({
        "app": "kube-apiserver",
        "hypershift.openshift.io/need-management-kas-access": "true",
        "hypershift.openshift.io/hosted-control-plane": "clusters-other",
        "kubevirt.io": "virt-launcher",
        "example.com/team": "red",
    });
    let deployment = rendered(|it| it, &[("spec/labels", labels)], Vec::new());
    let found = &deployment["spec"]["template"]["metadata"]["labels"];
    assert_eq!(found["app"], "a");
    assert_eq!(found["example.com/team"], "red");
    assert_ne!(
        found["hypershift.openshift.io/hosted-control-plane"],
        "clusters-other"
    );
    assert_eq!(
        found["hypershift.openshift.io/need-management-kas-access"],
        Value::Null
    );
    assert_eq!(found["kubevirt.io"], Value::Null);
}
