//! A component owns its facts: one that is declared here gets all that others get, without a table elsewhere.

use api::group::Side;
use api::hypershift::v1beta1::HostedControlPlane;
use api::hypershift::v1beta1::monitoring::MetricsSet;
use control_plane_component::asset::Asset;
use control_plane_component::certificate::server;
use control_plane_component::dependency::dependencies;
use control_plane_component::facts::Infra;
use control_plane_component::render::{Rendered, render};
use control_plane_component::settings::Settings;
use control_plane_component::{
    CapiUse, Component, Context, Leaf, Metrics, Objects, Predicates, Publication, Release,
    handover, names, sidecar,
};
use serde_json::{Value, json};

use super::{all, edit};
use crate::{infra, pki};

const NAME: &str = "example";

static ASSETS: [Asset; 3] = [
    Asset::new(
        "deployment.yaml",
        "
apiVersion: apps/v1
kind: Deployment
metadata: { name: example }
spec:
  selector: { matchLabels: { app: example } }
  template:
    metadata: { labels: { app: example } }
    spec:
      containers: [{ name: example, image: registry.example.com/example }]
",
    ),
    Asset::new(
        "pdb.yaml",
        "
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: { name: example }
spec: { selector: { matchLabels: { app: example } } }
",
    ),
    Asset::new(
        "servicemonitor.yaml",
        "
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata: { name: example }
spec: { endpoints: [{ port: metrics, metricRelabelings: [] }], selector: {} }
",
    ),
];

fn component() -> Component {
    Component::new(NAME, &ASSETS)
        .api_critical()
        .management_api()
        .uses_capi(CapiUse::Proxied)
        .depends_on(&["etcd"])
        .with_certificates(certificates)
        .published_by(Publication {
            services: &[NAME, "example-old"],
            routes: &[NAME],
            objects: published,
        })
        .metrics(Metrics {
            telemetry: Some(("keep", "example_total")),
            sre: None,
        })
        .manifest("pdb.yaml", edit::disruption_budget)
}

fn certificates(context: &Context<'_>) -> Vec<Leaf> {
    vec![server("example-serving", NAME).names(names::service(context, NAME))]
}

fn published(_: &Context<'_>) -> Vec<Value> {
    let object = |version: &str, kind: &str| json!({ "apiVersion": version, "kind": kind, "metadata": { "name": NAME } });
    vec![
        object("v1", "Service"),
        object("route.openshift.io/v1", "Route"),
    ]
}

/// Looks at a control plane on private types of a highly available cluster that collects telemetry.
fn with<T>(objects: &Objects, look: impl FnOnce(&Context<'_>) -> T) -> T {
    let text =
        include_str!("../../../control-plane-component/tests/data/base/hosted-control-plane.yaml");
    let mut hcp: HostedControlPlane = serde_saphyr::from_str(text).unwrap();
    hcp.spec.controller_availability_policy =
        serde_json::from_value(json!("HighlyAvailable")).unwrap();
    let settings = Settings {
        capi: Side::Private,
        capi_proxy_image: Some("registry.example.com/proxy".to_owned()),
        metrics_set: Some(MetricsSet::Telemetry),
        served_groups: ["monitoring.coreos.com", "route.openshift.io"]
            .map(str::to_owned)
            .into(),
        ..Settings::new("own")
    };
    let release = Release::default();
    look(&Context {
        hcp: &hcp,
        release: &release,
        user_release: &release,
        infra: &Infra::default(),
        objects,
        settings: &settings,
        predicates: Predicates::Asked,
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
fn a_declared_component_gets_its_certificate() {
    with(&Objects::default(), |context| {
        let leaves = pki::leaves(&[component()], context);
        let leaf = leaves.iter().find(|leaf| leaf.secret == "example-serving");
        assert!(leaf.unwrap().names.contains(&NAME.to_owned()));
        // All of the others have theirs in the same way.
        let secrets = pki::leaves(&[], context);
        assert!(secrets.iter().all(|leaf| leaf.secret != "kas-server-crt"));
    });
}

#[test]
fn a_declared_component_is_published_and_its_old_services_are_deleted() {
    let old =
        json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "example-old" } });
    let objects = Objects::from_iter([old]);
    with(&objects, |context| {
        let wanted = infra::wanted(&[component()], context);
        for kind in ["Service", "Route"] {
            let is_there =
                |object: &Value| object["kind"] == kind && object["metadata"]["name"] == NAME;
            assert!(wanted.objects.iter().any(is_there), "{kind}");
        }
        let deleted: Vec<_> = wanted.deletions.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(deleted, ["example-old"]);
    });
}

#[test]
fn a_declared_component_gets_monitor_budget_replicas_and_proxy() {
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
fn a_declared_component_waits_for_what_it_depends_on() {
    with(&Objects::default(), |context| {
        assert_eq!(
            dependencies(&component(), context),
            ["etcd", "kube-apiserver"]
        );
        assert_eq!(dependencies(&component().independent(), context), ["etcd"]);
    });
}

/// A migration stops what writes to Cluster API: hypershift-operator has the list, and components declare it.
#[test]
fn components_that_use_cluster_api_are_handed_over_in_a_migration() {
    let of = |capi: CapiUse| {
        let found = all()
            .iter()
            .filter(move |component| component.capi() == capi);
        found.map(|component| component.name).collect::<Vec<_>>()
    };
    assert_eq!(of(CapiUse::Proxied), handover::PROXIED);
    assert_eq!(of(CapiUse::Direct), handover::DIRECT);
}
