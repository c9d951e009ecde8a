//! Whether a control plane has all of its replicas, and where they are.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Map, Value};
use testbed::client::{ApiClient, Resource};
use testbed::hosted::{DEPLOYMENTS, STATEFUL_SETS};

use crate::highly_available::pods::{self, Pod};

const BUDGETS: Resource<'_> = Resource::new("policy/v1", "poddisruptionbudgets");
/// Three replicas, because without them APIs are gone; and the budgets of evictions.
const CRITICAL: [(&str, &str); 6] = [
    ("etcd", "etcd"),
    ("kube-apiserver", "kube-apiserver"),
    ("oauth-openshift", "oauth-openshift"),
    ("openshift-apiserver", "openshift-apiserver"),
    ("openshift-oauth-apiserver", "openshift-oauth-apiserver"),
    ("packageserver", "packageserver-pdb"),
];
/// Two replicas that are kept apart: one does the work, or both do.
const SPREAD: [&str; 8] = [
    "cluster-policy-controller",
    "ignition-server",
    "ignition-server-proxy",
    "konnectivity-agent",
    "kube-controller-manager",
    "kube-scheduler",
    "openshift-controller-manager",
    "openshift-route-controller-manager",
];
/// Two replicas that may be on one node.
const SEVERAL: [&str; 2] = ["endpoint-resolver", "metrics-proxy"];

/// What has replicas.
#[derive(Debug)]
pub(crate) struct Workload {
    pub(crate) name: String,
    pub(crate) replicas: usize,
    selector: Map<String, Value>,
    /// Whether it is bound to its nodes by its volumes.
    is_stateful: bool,
}

impl Workload {
    fn of(object: &Value, is_stateful: bool) -> Self {
        let selector = object["spec"]["selector"]["matchLabels"].as_object();
        let replicas = object["spec"]["replicas"].as_u64().unwrap_or(1);
        Self {
            name: object["metadata"]["name"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            replicas: usize::try_from(replicas).unwrap_or(usize::MAX),
            selector: selector.cloned().unwrap_or_default(),
            is_stateful,
        }
    }

    /// Its pods that serve.
    pub(crate) fn serving<'a>(&self, pods: &'a [Pod]) -> Vec<&'a Pod> {
        pods.iter()
            .filter(|pod| pod.serves() && pod.has(&self.selector))
            .collect()
    }
}

/// All that run.
pub(crate) async fn workloads(admin: &ApiClient, namespace: &str) -> Result<Vec<Workload>> {
    let mut all = Vec::new();
    for (of, is_stateful) in [(DEPLOYMENTS, false), (STATEFUL_SETS, true)] {
        let found = admin.list(&of.within(namespace)).await?;
        all.extend(found.iter().map(|object| Workload::of(object, is_stateful)));
    }
    Ok(all)
}

/// All replicas serve that can, with so many nodes: those that are kept apart wait for a node of their own.
pub(crate) async fn is_whole(admin: &ApiClient, namespace: &str, nodes: usize) -> Result<()> {
    let pods = pods::all(admin, namespace).await?;
    for workload in workloads(admin, namespace).await? {
        let serving = workload.serving(&pods).len();
        let expected = workload.replicas.min(nodes);
        let name = &workload.name;
        ensure!(serving >= expected, "{serving} of {expected} {name} serve");
        ensure!(
            workload.is_stateful || serving <= workload.replicas,
            "{name}: more serve than desired"
        );
    }
    Ok(())
}

/// Replicas are as many as they should be, each on a node of its own, and at most one may be taken away on purpose.
pub(crate) async fn is_spread(admin: &ApiClient, namespace: &str) -> Result<()> {
    let pods = pods::all(admin, namespace).await?;
    let all = workloads(admin, namespace).await?;
    let expected = CRITICAL.map(|(name, _)| (name, 3)).into_iter();
    for (name, replicas) in expected.chain(SPREAD.map(|name| (name, 2))) {
        let workload = with_replicas(&all, name, replicas)?;
        // Each node is a zone here.
        let serving = workload.serving(&pods);
        let nodes: BTreeSet<_> = serving.iter().map(|pod| &pod.node).collect();
        ensure!(nodes.len() == replicas, "{name} is on {nodes:?}");
    }
    for name in SEVERAL {
        with_replicas(&all, name, 2)?;
    }
    let budgets = admin.list(&BUDGETS.within(namespace)).await?;
    for (_, name) in CRITICAL {
        let budget = budgets.iter().find(|one| one["metadata"]["name"] == name);
        let allowed = budget.map(|one| one["status"]["disruptionsAllowed"].clone());
        ensure!(allowed == Some(1.into()), "{name}: {budget:?}");
    }
    Ok(())
}

fn with_replicas<'a>(all: &'a [Workload], name: &str, replicas: usize) -> Result<&'a Workload> {
    let found = all.iter().find(|workload| workload.name == name);
    let workload = found.with_context(|| format!("there is no {name}"))?;
    ensure!(workload.replicas == replicas, "{workload:?}");
    Ok(workload)
}
