//! AWS announces the end of a spot instance: its pods leave, and another machine replaces it.
//!
//! The termination handler of the payload is a stand-in that sees no announcement, so the taint that it would set is set
//! here.

use std::cell::Cell;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use api::annotations::node_pool::ENABLE_SPOT;
use api::group;
use serde_json::{Value, json};
use testbed::client::{Patch, Resource};
use testbed::conditions;
use testbed::hosted::{Cluster, DEPLOYMENTS, Fixture, Guest};
use testbed::node::condition;

use crate::hosted_cluster::observe::meanwhile;

/// Label of machines that may end at any time.
const INTERRUPTIBLE: &str = "hypershift.openshift.io/interruptible-instance";
/// Annotation of a machine whose end was announced.
const SIGNAL: &str = "hypershift.openshift.io/spot-interruption-signal";
/// The taint of the termination handler.
const TAINT: &str = "aws-node-termination-handler/rebalance-recommendation";
/// How long a response may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// Makes the pool, which has one machine, a pool of spot instances, and announces the end of its instance.
pub(crate) async fn replaces_an_interrupted_worker(
    fixture: &Fixture,
    cluster: &Cluster<'_>,
    guest: &Guest,
) -> Result<()> {
    let spot = json!({ "metadata": { "annotations": { ENABLE_SPOT.key(): "true" } } });
    let admin = &fixture.testbed.admin;
    admin
        .patch(&cluster.pool_path(), Patch::Merge, &spot)
        .await?;
    let machine = fixture
        .stage("the pool's machine is a spot instance", async || {
            let machine = only(cluster).await?;
            let (name, labels) = (&machine["metadata"]["name"], &machine["metadata"]["labels"]);
            ensure!(
                !labels[INTERRUPTIBLE].is_null(),
                "{name} is not interruptible: its labels are {labels}"
            );
            is_running(&machine)?;
            Ok(machine)
        })
        .await?;
    is_checked(fixture, cluster).await?;
    cluster.has_workers(guest, 1).await?;
    guest.runs_a_workload(fixture).await?;
    let interrupted = Interrupted {
        fixture,
        cluster,
        guest,
        machine: &machine,
        was_announced: Cell::new(false),
    };
    interrupted.begin().await?;
    meanwhile(interrupted.is_replaced(), async || interrupted.look().await).await?;
    ensure!(
        interrupted.was_announced.get(),
        "its machine never had the annotation {SIGNAL}"
    );
    cluster.has_workers(guest, 1).await?;
    let path = DEPLOYMENTS.named("default", "workload");
    fixture
        .stage("the workload runs on the new worker", async || {
            condition(&guest.client.get(&path).await?, "Available")
        })
        .await
}

/// The instance of a machine.
pub(crate) fn instance(machine: &Value) -> String {
    let id = machine["spec"]["providerID"].as_str().unwrap_or_default();
    id.rsplit('/').next().unwrap_or_default().to_owned()
}

/// The pool's machine, if it has exactly one.
async fn only(cluster: &Cluster<'_>) -> Result<Value> {
    let mut machines = cluster.machines().await?;
    let count = machines.len();
    match (machines.pop(), count) {
        (Some(machine), 1) => Ok(machine),
        (last, _) => {
            let untrue = last.map(|machine| conditions::untrue(&machine));
            bail!("there are {count} machines; of the last one: {untrue:?}")
        }
    }
}

fn is_running(machine: &Value) -> Result<()> {
    let (name, phase) = (&machine["metadata"]["name"], &machine["status"]["phase"]);
    let untrue = conditions::untrue(machine);
    ensure!(phase == "Running", "{name} is {phase}: {untrue}");
    Ok(())
}

/// Spot machines have a MachineHealthCheck of their own, whether or not the pool is repaired.
async fn is_checked(fixture: &Fixture, cluster: &Cluster<'_>) -> Result<()> {
    let version = format!("{}/v1beta2", group::core(cluster.capi_types()));
    let checks = Resource::new(&version, "machinehealthchecks");
    let name = format!("{}-spot", cluster.pool());
    let path = checks.named(&cluster.namespace(), &name);
    fixture
        .stage("spot machines have a health check", async || {
            let check = fixture.testbed.admin.get(&path).await?;
            let selected = &check["spec"]["selector"]["matchLabels"][INTERRUPTIBLE];
            ensure!(!selected.is_null(), "{}", check["spec"]["selector"]);
            Ok(())
        })
        .await
}

/// A machine whose end is announced.
struct Interrupted<'a> {
    fixture: &'a Fixture,
    cluster: &'a Cluster<'a>,
    guest: &'a Guest,
    machine: &'a Value,
    was_announced: Cell<bool>,
}

// === impl Interrupted ===

impl Interrupted<'_> {
    fn node(&self) -> &str {
        self.machine["status"]["nodeRef"]["name"]
            .as_str()
            .unwrap_or_default()
    }

    /// What the termination handler does.
    async fn begin(&self) -> Result<()> {
        let path = format!("/api/v1/nodes/{}", self.node());
        let node = self.guest.client.get(&path).await.context("its node")?;
        let taints = node["spec"]["taints"].as_array();
        let mut taints = taints.cloned().unwrap_or_default();
        taints.push(json!({ "key": TAINT, "value": "event", "effect": "NoSchedule" }));
        let tainted = json!({ "spec": { "taints": taints } });
        let progress = &self.fixture.testbed.progress;
        progress.note(&format!("interrupting {}", instance(self.machine)));
        self.guest
            .client
            .patch(&path, Patch::Merge, &tainted)
            .await
            .map(drop)
    }

    async fn is_replaced(&self) -> Result<()> {
        let uid = &self.machine["metadata"]["uid"];
        self.fixture
            .stage("another machine replaces the interrupted one", async || {
                let machine = only(self.cluster).await?;
                ensure!(
                    machine["metadata"]["uid"] != *uid,
                    "it is there: {}",
                    machine["status"]
                );
                is_running(&machine)
            })
            .await
    }

    /// The workload leaves the node before its instance ends.
    async fn look(&self) -> Result<()> {
        let uid = &self.machine["metadata"]["uid"];
        let machines = self.cluster.machines().await?;
        let mut own = machines.iter().filter(|it| it["metadata"]["uid"] == *uid);
        if own.any(|it| it["metadata"]["annotations"][SIGNAL] == TAINT) {
            self.was_announced.set(true);
        }
        // The instance first: pods that are there afterwards have outlived it.
        let instance = instance(self.machine);
        let instances = self.cluster.instances().await?;
        if instances.iter().any(|it| it.id == instance) {
            return Ok(());
        }
        let path = "/api/v1/namespaces/default/pods?labelSelector=app%3Dworkload";
        let requested = tokio::time::timeout(PATIENCE, self.guest.client.list(path)).await;
        let Ok(Ok(pods)) = requested else {
            return Ok(());
        };
        let left = pods
            .iter()
            .filter(|pod| pod["spec"]["nodeName"] == self.node());
        let count = left.count();
        ensure!(count == 0, "{instance} ended with {count} pods on its node");
        Ok(())
    }
}
