//! Contexts for tests: one mock API server for both clusters, so that the order of all requests is checked, and caches
//! with given objects.

use clap::Parser as _;
use kube::runtime::watcher::Event;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use support::testing::{Answer, Expect, Scenario};

use super::super::metrics::Metrics;
use super::*;
use crate::args::{Cli, Command};

const ARGUMENTS: [&str; 6] = [
    "control-plane-operator",
    "hosted-cluster-config-operator",
    "--namespace=clusters-a",
    "--hosted-control-plane=a",
    "--target-kubeconfig=/kubeconfig",
    "--platform-type=AWS",
];
const STATUS: &str =
    "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters-a/hostedcontrolplanes/a/status";

/// What the caches hold.
pub(in super::super) struct Cached {
    pub(in super::super) control_plane: Value,
    pub(in super::super) machines: Vec<Value>,
    pub(in super::super) nodes: Vec<Value>,
}

// === impl Cached ===

impl Cached {
    /// Just a control plane.
    pub(in super::super) fn of(control_plane: Value) -> Self {
        Self {
            control_plane,
            machines: Vec::new(),
            nodes: Vec::new(),
        }
    }
}

/// The HostedControlPlane `clusters-a/a`, with these fields of its specification.
pub(in super::super) fn control_plane(spec: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "hypershift.openshift.io/v1beta1", "kind": "HostedControlPlane",
        "metadata": { "name": "a", "namespace": "clusters-a", "uid": "u", "resourceVersion": "1" },
        "spec": {
            "releaseImage": "r", "pullSecret": { "name": "pull-secret" }, "sshKey": { "name": "" },
            "clusterID": "c", "infraID": "a-x7k2p", "issuerURL": "https://issuer.example.com",
            "dns": { "baseDomain": "example.com" },
            "platform": { "type": "AWS" }, "etcd": { "managementType": "Managed" }, "services": [],
        },
    });
    for (field, value) in spec.as_object().into_iter().flatten() {
        object["spec"][field] = value.clone();
    }
    object
}

/// A write of the status with these conditions, and no others.
#[expect(clippy::needless_pass_by_value, reason = "calls are shorter")]
pub(in super::super) fn status_put(conditions: Value) -> Expect {
    let answer = Answer::ok(&control_plane(&json!({})));
    Expect::put(STATUS)
        .body(json!({ "status": { "conditions": conditions } }))
        .answer(answer)
}

/// The answer of an API server that refuses a request.
pub(in super::super) fn refused() -> Answer {
    Answer::error(403, "Forbidden")
}

/// A context whose clients send all requests to `scenario`.
pub(in super::super) async fn context(scenario: &Scenario, cached: Cached) -> Context {
    let Command::HostedClusterConfigOperator(args) =
        Cli::try_parse_from(ARGUMENTS).unwrap().command
    else {
        panic!("another command");
    };
    let args = Args {
        capi_types: api::group::CapiTypes::Private,
        operate_on_release_image: None,
        ..*args
    };
    let releases = Releases::new(payload::Options::default()).unwrap();
    let clients = (scenario.client(), scenario.client());
    let (ctx, mut writers) = Context::new(&args, clients, releases, Metrics::default()).await;
    fill(&mut writers.control_planes, vec![cached.control_plane]);
    fill(&mut writers.machines, cached.machines);
    fill(&mut writers.nodes, cached.nodes);
    ctx
}

/// Puts objects into a cache, as their initial list.
fn fill<K>(writer: &mut Writer<K>, objects: Vec<Value>)
where
    K: 'static + Lookup + Clone + DeserializeOwned,
    K::DynamicType: Eq + Hash + Clone,
{
    writer.apply_watcher_event(&Event::Init);
    for object in objects {
        let object = serde_json::from_value(object).unwrap();
        writer.apply_watcher_event(&Event::InitApply(object));
    }
    writer.apply_watcher_event(&Event::InitDone);
}
