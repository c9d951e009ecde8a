//! Reads a hosted cluster, and checks what holds of every hosted cluster: the crate `invariants` decides.
//!
//! Every [`Cluster`] goes through it when it has come up and before it is destroyed. Where no pods run, workloads are
//! checked by themselves: [`of_workloads`].

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Result, bail, ensure};
use invariants::{Finding, Invariant, Observed};
use pod_tools::operands;
use serde_json::{Value, json};

use super::{
    Cluster, DEPLOYMENTS, Guest, HOSTED_CLUSTERS, NAMESPACE, NODE_POOLS, OPERATORS, PODS,
    STATEFUL_SETS, admission,
};
use crate::client::{ApiClient, Resource};

/// The kinds in the namespace of a control plane that are read. Routes are not served everywhere.
const KINDS: [(&str, Resource<'_>); 7] = [
    ("Pod", PODS),
    ("Deployment", DEPLOYMENTS),
    ("StatefulSet", STATEFUL_SETS),
    ("Job", Resource::new("batch/v1", "jobs")),
    ("CronJob", Resource::new("batch/v1", "cronjobs")),
    (
        "NetworkPolicy",
        Resource::new("networking.k8s.io/v1", "networkpolicies"),
    ),
    ("Route", Resource::new("route.openshift.io/v1", "routes")),
];
const PRIORITY_CLASSES: Resource<'_> = Resource::new("scheduling.k8s.io/v1", "priorityclasses");
const POLICIES: Resource<'_> = Resource::new(
    "admissionregistration.k8s.io/v1",
    "validatingadmissionpolicies",
);
const ENDPOINTS: Resource<'_> = Resource::new("discovery.k8s.io/v1", "endpointslices");
/// The label of an operator's pods, and where they serve metrics.
const OPERATOR: (&str, &str) = ("app", "hypershift-operator");
const METRICS_PORT: u16 = 9000;
/// How much of a log before a restart is read.
const LOG_LINES: usize = 50;
/// What holds of objects, whether they run or not.
const OF_RUNNING: [Invariant; 5] = [
    Invariant::ClusterConditions,
    Invariant::ClusterMetrics,
    Invariant::Nodes,
    Invariant::PayloadArchitecture,
    Invariant::PoolConditions,
];

// === impl Cluster ===

impl Cluster<'_> {
    /// Waits until everything that holds of healthy clusters holds of this one: conditions take a moment. What depends on
    /// workers is judged only once they `have_settled`.
    pub async fn holds_invariants(&self, guest: &Guest, have_settled: bool) -> Result<()> {
        self.stage("what holds of every cluster holds", async || {
            let mut observed = self.observed(guest).await?;
            // Users bring machines and take them away, whatever a pool requests.
            observed.has_settled = have_settled && self.platform().makes_machines();
            report(&invariants::findings(&observed))
        })
        .await
    }

    async fn observed(&self, guest: &Guest) -> Result<Observed> {
        let admin = &self.fixture.testbed.admin;
        let mut observed = read(admin, NAMESPACE, self.name()).await?;
        observed.operator_pods = with_kind("Pod", admin.list(&PODS.within(OPERATORS)).await?);
        observed.metrics = Some(metrics(admin, &observed.operator_pods).await?);
        observed.guest = Some(invariants::Guest {
            nodes: guest.nodes().await?,
            admission_policies: guest.client.list(&POLICIES.all()).await?,
            attempts: admission::attempts(&guest.client).await?,
        });
        Ok(observed)
    }

    /// Waits until no operator reports metrics of the cluster, which is gone.
    pub(super) async fn metrics_are_gone(&self) -> Result<()> {
        let admin = &self.fixture.testbed.admin;
        self.stage("no metrics of it are left", async || {
            let pods = with_kind("Pod", admin.list(&PODS.within(OPERATORS)).await?);
            let metrics = metrics(admin, &pods).await?;
            let left = invariants::metrics_left(&metrics, NAMESPACE, self.name(), &[self.pool()]);
            ensure!(left.is_empty(), "{left:#?}");
            Ok(())
        })
        .await
    }
}

/// Checks what holds of the objects of a control plane where its pods do not run and its status is simulated.
pub async fn of_workloads(admin: &ApiClient, namespace: &str, name: &str) -> Result<()> {
    let observed = read(admin, namespace, name).await?;
    // What is not there would not be judged.
    for kind in ["Deployment", "NetworkPolicy"] {
        let mut objects = observed.objects.iter();
        ensure!(objects.any(|it| it["kind"] == kind), "there is no {kind}");
    }
    let mut findings = invariants::findings(&observed);
    findings.retain(|finding| !OF_RUNNING.contains(&finding.invariant));
    report(&findings)
}

fn report(findings: &[Finding]) -> Result<()> {
    let mut text = String::new();
    for finding in findings {
        write!(text, "\n  {finding}")?;
    }
    ensure!(findings.is_empty(), "{} findings:{text}", findings.len());
    Ok(())
}

/// What the management cluster has of a hosted cluster.
async fn read(admin: &ApiClient, namespace: &str, name: &str) -> Result<Observed> {
    let control_plane = format!("{namespace}-{name}");
    let cluster = admin.get(&HOSTED_CLUSTERS.named(namespace, name)).await?;
    let mut pools = admin.list(&NODE_POOLS.within(namespace)).await?;
    pools.retain(|pool| pool["spec"]["clusterName"] == name);
    let mut objects = Vec::new();
    for (kind, resource) in KINDS {
        let found = match admin.list(&resource.within(&control_plane)).await {
            Ok(found) => found,
            Err(error) if kind == "Route" && is_unknown(&error) => continue,
            Err(error) => return Err(error),
        };
        objects.extend(with_kind(kind, found));
    }
    without_operands(&mut objects);
    let is_isolated = cluster["spec"]["platform"]["type"] == "AWS";
    let management_api = if is_isolated {
        management_api(admin).await?
    } else {
        Vec::new()
    };
    Ok(Observed {
        node_pools: pools,
        namespace: admin
            .get(&format!("/api/v1/namespaces/{control_plane}"))
            .await?,
        previous_logs: previous_logs(admin, &control_plane, &objects).await,
        objects,
        priority_classes: admin.list(&PRIORITY_CLASSES.all()).await?,
        management_api,
        hosted_cluster: Some(cluster),
        ..Observed::default()
    })
}

/// Removes what stand-ins of OpenShift's operators create: it shows nothing of the product.
fn without_operands(objects: &mut Vec<Value>) {
    let operands = objects
        .iter()
        .filter(|object| !object["metadata"]["labels"][operands::STAND_IN].is_null())
        .map(|object| object["metadata"]["name"].clone());
    let operands: Vec<_> = operands.collect();
    objects.retain(|object| {
        let (name, app) = (
            &object["metadata"]["name"],
            &object["metadata"]["labels"]["app"],
        );
        !operands.contains(name) && !operands.contains(app)
    });
}

fn is_unknown(error: &anyhow::Error) -> bool {
    crate::client::status_code(error) == Some(404)
}

/// The items of a list do not say their kind.
fn with_kind(kind: &str, mut objects: Vec<Value>) -> Vec<Value> {
    for object in &mut objects {
        object["kind"] = json!(kind);
    }
    objects
}

/// The addresses of the management cluster's API server; none if it is on loopback only.
async fn management_api(admin: &ApiClient) -> Result<Vec<String>> {
    let path = ENDPOINTS.named("default", "kubernetes");
    let Some(slice) = admin.find(&path).await? else {
        return Ok(Vec::new());
    };
    let endpoints = slice["endpoints"].as_array().into_iter().flatten();
    let addresses = endpoints.flat_map(|it| it["addresses"].as_array().into_iter().flatten());
    let addresses: Vec<_> = addresses.filter_map(Value::as_str).collect();
    ensure!(!addresses.is_empty(), "the API server has no address");
    Ok(addresses.into_iter().map(str::to_owned).collect())
}

/// The logs before the last restart of containers that have restarted; without those that are not kept any more.
async fn previous_logs(
    admin: &ApiClient,
    namespace: &str,
    objects: &[Value],
) -> BTreeMap<(String, String), String> {
    let mut logs = BTreeMap::new();
    for pod in objects.iter().filter(|object| object["kind"] == "Pod") {
        for status in pod["status"]["containerStatuses"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let (Some(pod), Some(container)) =
                (pod["metadata"]["name"].as_str(), status["name"].as_str())
            else {
                continue;
            };
            if status["restartCount"].as_u64().unwrap_or(0) == 0 {
                continue;
            }
            let path = PODS.named(namespace, pod);
            let path =
                format!("{path}/log?container={container}&previous=true&tailLines={LOG_LINES}");
            if let Ok(log) = admin.text(&path).await {
                logs.insert((pod.to_owned(), container.to_owned()), log);
            }
        }
    }
    logs
}

/// The metrics of all operators.
async fn metrics(admin: &ApiClient, pods: &[Value]) -> Result<String> {
    let (label, value) = OPERATOR;
    let mut metrics = String::new();
    for pod in pods {
        let is_operator = pod["metadata"]["labels"][label] == value;
        if !is_operator || pod["status"]["phase"] != "Running" {
            continue;
        }
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        let path = PODS.named(OPERATORS, &format!("{name}:{METRICS_PORT}"));
        metrics += &admin.text(&format!("{path}/proxy/metrics")).await?;
    }
    if metrics.is_empty() {
        bail!("no operator runs in {OPERATORS}");
    }
    Ok(metrics)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_of_stand_ins_are_left_out() {
        let object =
            |name: &str, labels: Value| json!({ "metadata": { "name": name, "labels": labels } });
        let mut objects = vec![
            object(
                "csi-snapshot-controller",
                json!({ operands::STAND_IN: "a" }),
            ),
            object(
                "csi-snapshot-controller-1",
                json!({ "app": "csi-snapshot-controller" }),
            ),
            object("etcd-0", json!({ "app": "etcd" })),
            object("without-labels", Value::Null),
        ];
        without_operands(&mut objects);
        let names: Vec<_> = objects.iter().map(|it| &it["metadata"]["name"]).collect();
        assert_eq!(names, ["etcd-0", "without-labels"]);
    }
}
