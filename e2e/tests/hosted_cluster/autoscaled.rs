//! The cluster autoscaler adds a machine for pods that find no node, and removes it when no pod needs it.
//!
//! The autoscaler is a stand-in; its flags, its permissions and the annotations that it reads are the real ones.

use anyhow::{Context, Result, ensure};
use api::conditions::PoolCondition;
use serde_json::{Value, json};
use testbed::client::Patch;
use testbed::fixtures;
use testbed::hosted::{Cluster, DEPLOYMENTS, Fixture, Guest};
use testbed::node::condition;

/// The Deployment of the autoscaler.
const AUTOSCALER: &str = "cluster-autoscaler";
/// The workload that needs two nodes.
pub(crate) const HUNGRY: &str = "hungry";
/// One node has room for one of its pods.
const SHARE_PERCENT: u64 = 60;
/// What the autoscaler is to know of `scaleDown`.
const FLAGS: [&str; 3] = [
    "--scale-down-enabled=true",
    "--scale-down-delay-after-add=10s",
    "--scale-down-unneeded-time=10s",
];

/// Has the autoscaler choose the size of the pool, which has one machine, and ends with one machine.
pub(crate) async fn follows_its_pods(
    fixture: &Fixture,
    cluster: &Cluster<'_>,
    guest: &Guest,
) -> Result<()> {
    let admin = &fixture.testbed.admin;
    let quick = json!({ "spec": { "autoscaling": {
        "scaleDown": { "delayAfterAddSeconds": 10, "unneededDurationSeconds": 10 },
    } } });
    admin.patch(&cluster.path(), Patch::Merge, &quick).await?;
    bounds(
        fixture,
        cluster,
        &json!({ "replicas": null, "autoScaling": { "min": 1, "max": 2 } }),
    )
    .await?;
    has_flags(fixture, cluster).await?;
    cluster.available(&DEPLOYMENTS, AUTOSCALER).await?;
    fixture
        .stage("the pool says that it is autoscaled", async || {
            let pool = admin.get(&cluster.pool_path()).await?;
            condition(&pool, PoolCondition::AutoscalingEnabled.as_str())
        })
        .await?;

    two_pods_are_hungry(fixture, guest).await?;
    cluster.has_workers(guest, 2).await?;
    let path = DEPLOYMENTS.named("default", HUNGRY);
    fixture
        .stage("pods run that one node had no room for", async || {
            let found = guest.client.get(&path).await?;
            let available = &found["status"]["availableReplicas"];
            ensure!(*available == 2, "{}", found["status"]);
            Ok(())
        })
        .await?;

    guest.client.delete(&path).await?;
    cluster.has_workers(guest, 1).await?;
    bounds(
        fixture,
        cluster,
        &json!({ "replicas": 1, "autoScaling": null }),
    )
    .await
}

/// Requests two pods, of which a node has room for one.
pub(crate) async fn two_pods_are_hungry(fixture: &Fixture, guest: &Guest) -> Result<()> {
    let nodes = guest.nodes().await?;
    let node = nodes.first().context("there is no node")?;
    let request = format!("{}m", thousandths(node)? * SHARE_PERCENT / 100);
    let image = fixture.testbed.pause_image();
    let values = [("IMAGE", image.as_str()), ("CPU", request.as_str())];
    let hungry = fixtures::render("hosted_cluster/hungry", &values)?;
    guest.client.apply(&hungry).await
}

async fn bounds(fixture: &Fixture, cluster: &Cluster<'_>, spec: &Value) -> Result<()> {
    let desired = json!({ "spec": spec });
    let (admin, path) = (&fixture.testbed.admin, cluster.pool_path());
    admin.patch(&path, Patch::Merge, &desired).await.map(drop)
}

/// The settings of the HostedCluster reach the autoscaler.
async fn has_flags(fixture: &Fixture, cluster: &Cluster<'_>) -> Result<()> {
    let path = DEPLOYMENTS.named(&cluster.namespace(), AUTOSCALER);
    fixture
        .stage("the autoscaler has the delays of the cluster", async || {
            let found = fixture.testbed.admin.get(&path).await?;
            let containers = found["spec"]["template"]["spec"]["containers"].as_array();
            let mut containers = containers.into_iter().flatten();
            let own = containers.find(|it| it["name"] == AUTOSCALER);
            let arguments = own.and_then(|it| it["args"].as_array());
            let arguments = arguments.context("it has no arguments")?;
            let missing = FLAGS.iter().find(|flag| !arguments.contains(&json!(flag)));
            ensure!(missing.is_none(), "{missing:?} is missing in {arguments:?}");
            let replicas = &found["spec"]["replicas"];
            ensure!(*replicas == 1, "it has {replicas} replicas");
            Ok(())
        })
        .await
}

/// The processors of a node, in thousandths.
fn thousandths(node: &Value) -> Result<u64> {
    let amount = node["status"]["allocatable"]["cpu"].as_str();
    let amount = amount.context("it has no processors")?;
    let number = |text: &str| text.parse::<u64>().with_context(|| amount.to_owned());
    match amount.strip_suffix('m') {
        Some(amount) => number(amount),
        None => Ok(number(amount)? * 1000),
    }
}
