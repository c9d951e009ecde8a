//! A component declares everything about itself: the example component needs no entry in another file.

use api::group::CapiTypes;
use api::hypershift::v1beta1::HostedControlPlane;
use api::hypershift::v1beta1::monitoring::MetricsSet;
use control_plane_component::dependency::dependencies;
use control_plane_component::facts::Infra;
use control_plane_component::render::{Rendered, render};
use control_plane_component::settings::Settings;
use control_plane_component::{CapiUse, Context, Objects, Predicates, Release, sidecar};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::example::{NAME, SIGNER, component};
use crate::hosted_control_plane::kinds;
use crate::{infra, pki};

/// Calls `inspect` with a highly available control plane on private types that collects telemetry metrics.
fn with<T>(objects: &Objects, inspect: impl FnOnce(&Context<'_>) -> T) -> T {
    let text =
        include_str!("../../../control-plane-component/tests/data/base/hosted-control-plane.yaml");
    let mut hcp: HostedControlPlane = serde_saphyr::from_str(text).unwrap();
    hcp.spec.controller_availability_policy =
        serde_json::from_value(json!("HighlyAvailable")).unwrap();
    let settings = Settings {
        capi_types: CapiTypes::Private,
        capi_proxy_image: Some("registry.example.com/proxy".to_owned()),
        metrics_set: Some(MetricsSet::Telemetry),
        served_groups: ["monitoring.coreos.com", "route.openshift.io"]
            .map(str::to_owned)
            .into(),
        ..Settings::new("own")
    };
    let release = Release::default();
    inspect(&Context {
        hcp: &hcp,
        release: &release,
        user_release: &release,
        infra: &Infra::default(),
        objects,
        settings: &settings,
        predicates: Predicates::Evaluated,
    })
}

fn rendered() -> Rendered {
    with(&Objects::default(), |context| {
        render(&component(), context).unwrap()
    })
}

fn manifest(kind: &str) -> Value {
    let rendered = rendered();
    let found = rendered.objects().find(|object| object["kind"] == kind);
    found.unwrap().clone()
}

#[test]
fn declared_components_get_certificates() {
    with(&Objects::default(), |context| {
        let leaves = pki::leaves(&[component()], context);
        let leaf = leaves.iter().find(|leaf| leaf.secret == "example-serving");
        assert!(leaf.unwrap().names.contains(&NAME.to_owned()));
        let authorities = pki::authorities(&[component()], context);
        assert!(authorities.contains(&SIGNER));
        // Without components there are no certificates.
        assert_eq!(pki::leaves(&[], context), []);
        let issued = pki::objects(
            &[component()],
            context,
            pki::CertificateSet::All,
            Timestamp::now(),
        );
        let issued = Objects::from_iter(issued.unwrap());
        let serving = issued.secret_value("example-serving", "tls.crt");
        assert!(serving.is_some(), "{issued:?}");
        let signer = issued.secret_value(SIGNER.secret, "ca.crt").unwrap();
        let bundle = issued.config_value("example-ca", "ca.crt").unwrap();
        assert_eq!(bundle.trim().as_bytes(), signer.trim_ascii());
    });
}

#[test]
fn declared_components_are_published() {
    let old =
        json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "example-old" } });
    let objects = Objects::from_iter([old]);
    with(&objects, |context| {
        let desired = infra::desired(&[component()], context);
        for kind in ["Service", "Route"] {
            let is_published =
                |object: &Value| object["kind"] == kind && object["metadata"]["name"] == NAME;
            assert!(desired.objects.iter().any(is_published), "{kind}");
        }
        let deleted: Vec<_> = desired
            .deletions
            .iter()
            .map(|it| it.name.as_str())
            .collect();
        assert_eq!(deleted, ["example-old"]);
        let addresses = infra::facts(&[component()], context);
        assert_eq!(addresses.ignition.host, NAME);
        let missing = infra::missing(&[component()], context, &addresses);
        assert_eq!(missing, ["the address of the example"]);
    });
}

/// Check O06.
#[test]
fn kinds_of_declared_components_are_watched() {
    let kind = ("networking.k8s.io/v1", "NetworkPolicy");
    let kind = (kind.0.to_owned(), kind.1.to_owned());
    assert!(kinds(&[component()]).contains(&kind));
    assert!(!kinds(&[]).contains(&kind));
}

#[test]
fn declared_components_get_monitor_pdb_replicas_and_proxy() {
    let monitor = manifest("ServiceMonitor");
    let rule = &monitor["spec"]["endpoints"][0]["metricRelabelings"][0];
    assert_eq!(
        (&rule["action"], &rule["regex"]),
        (&json!("keep"), &json!("example_total"))
    );
    let budget = manifest("PodDisruptionBudget");
    assert_ne!(
        budget["spec"],
        json!({ "selector": { "matchLabels": { "app": NAME } } })
    );
    let deployment = manifest("Deployment");
    assert_eq!(deployment["spec"]["replicas"], 3);
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["priorityClassName"], "hypershift-api-critical");
    assert_eq!(pod["initContainers"][0]["name"], sidecar::NAME);
}

#[test]
fn declared_components_wait_for_dependencies() {
    with(&Objects::default(), |context| {
        assert_eq!(
            dependencies(&component(), context),
            ["etcd", "kube-apiserver"]
        );
        assert_eq!(dependencies(&component().independent(), context), ["etcd"]);
    });
}

/// A migration stops the Deployments with this label; hypershift-operator does not depend on their names.
#[test]
fn declared_components_are_labeled_for_migration() {
    let deployment = manifest("Deployment");
    let labels = serde_json::from_value(deployment["metadata"]["labels"].clone()).unwrap();
    let found = CapiUse::from_labels(Some(&labels));
    assert_eq!(found, Ok(Some(CapiUse::Proxied)));
}
