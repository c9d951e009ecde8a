//! A control plane with Karpenter, its classes and its release, for tests.

use std::sync::Arc;

use api::group::CapiTypes;
use api::hypershift::v1beta1::HostedControlPlane;
use api::karpenter::v1::OpenshiftEc2NodeClass;
use control_plane_component::settings::Settings;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use payload::Release;
use payload::boot_images::Streams;
use payload::{Options, Overrides, Releases};
use serde_json::{Value, json};
use support::testing::{Answer, Expect, Scenario};

use super::context::{Context, Means};
use crate::facts::fixture;
use crate::hosted_cluster::build::control_plane_spec;
use crate::names;

pub(super) const NAMESPACE: &str = "clusters-one";

pub(super) fn now() -> Timestamp {
    "2030-01-31T12:00:00Z".parse().unwrap()
}

/// Marks an object as being deleted.
pub(super) fn delete(metadata: &mut ObjectMeta) {
    metadata.deletion_timestamp = Some(Time(now()));
}

/// The control plane of a cluster with Karpenter.
pub(super) fn control_plane() -> HostedControlPlane {
    let mut cluster = fixture::hosted_cluster("aws");
    fixture::with_auto_node(&mut cluster);
    let proxy = json!({ "proxy": { "httpProxy": "http://proxy.example.com:3128" } });
    cluster.spec.configuration = serde_json::from_value(proxy).unwrap();
    let facts = fixture::facts(cluster, CapiTypes::Private);
    let mut hcp = HostedControlPlane::new("one", control_plane_spec(&facts));
    let metadata = json!({
        "namespace": NAMESPACE, "name": "one", "uid": "hcp-uid", "resourceVersion": "7",
        "annotations": { names::CLUSTER: "clusters/one" },
    });
    hcp.metadata = serde_json::from_value(metadata).unwrap();
    let status = json!({
        "ready": true, "initialized": true,
        "kubeConfig": { "name": "admin-kubeconfig", "key": "kubeconfig" },
        "controlPlaneEndpoint": { "host": "api.one.example.com", "port": 6443 },
    });
    hcp.status = serde_json::from_value(status).unwrap();
    hcp
}

/// The read of the namespace, which is that of the cluster.
pub(super) fn namespace() -> Expect {
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": {
        "name": NAMESPACE, "uid": "ns", "annotations": { names::CLUSTER: "clusters/one" },
    } });
    Expect::get("/api/v1/namespaces/clusters-one").answer(Answer::ok(&namespace))
}

/// A class with this specification.
pub(super) fn class(name: &str, spec: &Value) -> OpenshiftEc2NodeClass {
    let class = json!({
        "apiVersion": "karpenter.hypershift.openshift.io/v1",
        "kind": "OpenshiftEC2NodeClass",
        "metadata": { "name": name, "uid": format!("uid-{name}"), "resourceVersion": "7", "generation": 2 },
        "spec": spec,
    });
    serde_json::from_value(class).unwrap()
}

/// A release with boot images of two architectures.
pub(super) fn release(version: &str) -> Arc<Release> {
    let image = format!("images.example.com/release:{version}");
    let tag = |name: &str| {
        let image = format!("images.example.com/{name}@sha256:{}", "a".repeat(64));
        json!({ "name": name, "from": { "kind": "DockerImage", "name": image } })
    };
    let references = json!({
        "apiVersion": "image.openshift.io/v1",
        "kind": "ImageStream",
        "metadata": { "name": version },
        "spec": { "tags": [tag("haproxy-router"), tag("hypershift"), tag("aws-karpenter-provider-aws")] },
    });
    let ami = |id: &str| json!({ "images": { "aws": { "regions": { "us-east-1": { "release": "9.6", "image": id } } } } });
    let stream = json!({
        "stream": "rhcos",
        "architectures": { "x86_64": ami("ami-0123"), "aarch64": ami("ami-0456") },
    });
    let map = json!({ "data": { "stream": stream.to_string() } });
    let read = Release::from_image_references(
        &image,
        references.to_string().as_bytes(),
        &Overrides::default(),
    );
    let streams = Streams::parse(&map.to_string()).unwrap();
    Arc::new(read.unwrap().with_boot_images(streams))
}

/// A context whose clients of both clusters are of the same mock.
pub(super) fn context(scenario: &Scenario) -> Context {
    Context::new(Means {
        management: scenario.client(),
        guest: scenario.client(),
        namespace: NAMESPACE.to_owned(),
        name: "one".to_owned(),
        capi_types: CapiTypes::Private,
        settings: Settings {
            // The management cluster has no security context constraints.
            uid: Some(1001),
            ..Settings::new("images.example.com/operator:v1")
        },
        ignition_endpoint: "ignition.one.example.com".to_owned(),
        releases: Releases::new(Options::default()).unwrap(),
    })
}
