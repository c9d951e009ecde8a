//! A hosted cluster for real: from an empty management cluster to workers that joined by their pool's user data, and back;
//! and its behavior in between, when a worker fails, when everything gets another release, when a pool is tagged,
//! autoscaled, or loses a spot instance, and when the configuration of nodes changes.
//!
//! Where nothing but scaling is tested, the AWS cloud controller manager is a stand-in, and kubelets initialize their nodes
//! themselves; in all longer scenarios it is the released program.
//!
//! What it does in a stage is in [`testbed::hosted`] and in the modules beside. It is on private types, unless the variable
//! `HYPERSHIFT_TYPES` says `standard` (`cargo xtask soak life`). It needs root; without it, it says so and does nothing.

pub(crate) mod aggregated;
pub(crate) mod autoscaled;
pub(crate) mod break_glass;
pub(crate) mod cloud_controller;
mod configured;
mod configured_files;
mod configured_pools;
pub(crate) mod control_plane;
mod from_nothing;
pub(crate) mod observe;
mod pod_security;
mod pools;
mod repair;
mod spot;
mod tags;
pub(crate) mod timeline;

use anyhow::{Result, bail};
use api::annotations::cluster::MACHINE_HEALTH_CHECK_TIMEOUT;
use api::group::CapiTypes;
use testbed::hosted::{self, Cluster, Fixture, Guest};
use testbed::node::NodeTestbed;
use tokio::sync::Mutex;

/// Two management clusters at a time are more than two processors bear.
static TURN: Mutex<()> = Mutex::const_new(());
/// Environment variable that says on which side they are.
const TYPES: &str = "HYPERSHIFT_TYPES";
/// The workers of the pool that is repaired and upgraded.
const WORKERS: usize = 2;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hosted_cluster_is_created_scaled_and_deleted() -> Result<()> {
    let _turn = TURN.lock().await;
    hosted::play(NodeTestbed::builder("hosted-cluster"), scenario).await
}

async fn scenario(fixture: &Fixture) -> Result<()> {
    let capi_types = capi_types()?;
    fixture.install(capi_types, &[]).await?;
    let cluster = Cluster::new(fixture, "demo", capi_types);
    cluster.create(&["--node-pool-replicas=1"]).await?;
    let guest = cluster.comes_up().await?;
    timeline::show(fixture, &cluster).await?;
    pod_security::is_restricted(fixture, &cluster).await?;
    let revocation = break_glass::begins(fixture, &cluster, &guest).await?;
    cluster.has_workers(&guest, 1).await?;
    aggregated::apis_answer(fixture, &guest).await?;
    guest.runs_a_workload(fixture).await?;
    for count in [3, 0] {
        cluster.scale(count).await?;
        cluster.has_workers(&guest, count).await?;
    }
    break_glass::ends(fixture, &cluster, &guest, revocation).await?;
    cluster.destroy().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: cargo xtask soak life"]
async fn a_hosted_cluster_is_repaired_and_upgraded() -> Result<()> {
    let _turn = TURN.lock().await;
    let builder = NodeTestbed::builder("hosted-cluster-upgrade");
    hosted::play_with_cloud_controller(builder, repaired_and_upgraded).await
}

async fn repaired_and_upgraded(fixture: &Fixture) -> Result<()> {
    let capi_types = capi_types()?;
    fixture.install(capi_types, &[]).await?;
    let cluster = Cluster::new(fixture, "demo", capi_types);
    // Long enough for a kubelet that begins again; the usual eight minutes are for users who wait.
    let patience = format!("--annotations={}=10s", MACHINE_HEALTH_CHECK_TIMEOUT.key());
    let workers = format!("--node-pool-replicas={WORKERS}");
    cluster.create(&[&workers, &patience]).await?;
    let guest = cluster.comes_up().await?;
    timeline::show(fixture, &cluster).await?;
    cluster.has_workers(&guest, WORKERS).await?;
    cloud_controller::initializes_nodes(fixture, &guest).await?;
    cloud_controller::deletes_the_node_of_an_ended_instance(fixture, &cluster, &guest, WORKERS)
        .await?;
    repair::replaces_a_dead_worker(fixture, &cluster, &guest, WORKERS).await?;
    upgrade(fixture, &cluster, &guest).await?;
    cloud_controller::initializes_nodes(fixture, &guest).await?;
    cluster.destroy().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: cargo xtask soak life"]
async fn a_pool_is_tagged_autoscaled_and_interrupted() -> Result<()> {
    let _turn = TURN.lock().await;
    let builder = NodeTestbed::builder("hosted-cluster-pool");
    hosted::play_with_cloud_controller(builder, tagged_autoscaled_and_interrupted).await
}

async fn tagged_autoscaled_and_interrupted(fixture: &Fixture) -> Result<()> {
    let capi_types = capi_types()?;
    let flags = autoscaled::from_zero_flags(fixture)?;
    let flags: Vec<_> = flags.iter().map(String::as_str).collect();
    fixture.install(capi_types, &flags).await?;
    let cluster = Cluster::new(fixture, "demo", capi_types);
    cluster.create(&["--node-pool-replicas=1"]).await?;
    let guest = cluster.comes_up().await?;
    timeline::show(fixture, &cluster).await?;
    cluster.has_workers(&guest, 1).await?;
    tags::reach_running_instances(fixture, &cluster).await?;
    autoscaled::follows_its_pods(fixture, &cluster, &guest).await?;
    autoscaled::from_zero(fixture, &cluster, &guest).await?;
    spot::replaces_an_interrupted_worker(fixture, &cluster, &guest).await?;
    cluster.destroy().await
}

/// Checks F04 and O07.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: cargo xtask soak life"]
async fn nodes_have_each_kind_of_configuration() -> Result<()> {
    let _turn = TURN.lock().await;
    let builder = NodeTestbed::builder("hosted-cluster-config");
    hosted::play_with_machine_config(builder, configured::scenario).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: cargo xtask soak life"]
async fn a_cluster_is_created_in_an_empty_account() -> Result<()> {
    let _turn = TURN.lock().await;
    let builder = NodeTestbed::builder("hosted-cluster-nothing");
    hosted::play_with_cloud_controller(builder, from_nothing::scenario).await
}

/// A pool of an older minor version joins; then all of the cluster gets a newer release.
async fn upgrade(fixture: &Fixture, cluster: &Cluster<'_>, guest: &Guest) -> Result<()> {
    let registry = &fixture.testbed.registry;
    let older = fixture.pushed.release(registry, "4.21.9").await?;
    let newer = fixture.pushed.release(registry, "4.22.1").await?;
    pools::create_in_place(fixture, cluster, &older).await?;
    cluster.has_workers(guest, WORKERS + 1).await?;
    pools::upgrade_with_the_control_plane(fixture, cluster, guest, &newer).await
}

/// The groups that its Cluster API objects are in.
pub(crate) fn capi_types() -> Result<CapiTypes> {
    match std::env::var(TYPES).as_deref() {
        Err(_) | Ok("private") => Ok(CapiTypes::Private),
        Ok("standard") => Ok(CapiTypes::Standard),
        Ok(other) => bail!("{TYPES} is {other:?}, and may be private or standard"),
    }
}
