//! Hosted clusters of both kinds on one management cluster: one that was there before the private types, and one beside it.
//!
//! The older one is made by an installation without the flag; then private types are installed, and nothing of it moves.
//! Both work, each is scaled and destroyed without the other's noticing, neither can look into the other, no secret of
//! either is anywhere but in Secrets, and the platform's own Cluster API objects stay as they are.
//!
//! It needs root; without it, it says so and does nothing.

mod isolation;
mod logs;
mod needles;
pub(crate) mod neighbour;
mod network;
mod platform;
mod strangers;
mod verbose;

use anyhow::{Result, ensure};
use api::annotations::{PRIVATE_CAPI_TYPES, SCOPE};
use api::group::CapiTypes;
use testbed::hosted::{self, Cluster, DEPLOYMENTS, Fixture, Guest, LEGACY, OPERATORS};
use testbed::node::NodeTestbed;

use neighbour::Neighbour;
use platform::Platform;

/// A cluster that has it is not migrated.
const HOLD: &str = "--annotations=hypershift.openshift.io/migration-hold=true";

/// A cluster that runs, with its API.
struct Running<'a> {
    cluster: Cluster<'a>,
    guest: Guest,
}

/// Check O07.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: cargo xtask soak side-by-side"]
async fn clusters_on_private_and_standard_types_coexist() -> Result<()> {
    // A node of two processors has room for one control plane.
    let two = NodeTestbed::builder("side-by-side").nodes(2);
    hosted::play(two, scenario).await
}

async fn scenario(fixture: &Fixture) -> Result<()> {
    fixture.install(CapiTypes::Standard, &[]).await?;
    let platform = Platform::create(fixture).await?;
    let old = Running::create(fixture, "old", CapiTypes::Standard, &[HOLD]).await?;
    let before = Neighbour::of(&old.cluster, &old.guest).await?;

    fixture
        .install(CapiTypes::Private, &[&verbose::installed()])
        .await?;
    taken_over(fixture, &old.cluster).await?;
    let new = Running::create(fixture, "new", CapiTypes::Private, &[]).await?;
    before.is_untouched(&old.cluster, &old.guest).await?;
    for running in [&old, &new] {
        running.guest.runs_a_workload(fixture).await?;
        running.cluster.is_on_its_side().await?;
    }

    isolation::no_account_reads_secrets_of(fixture, &old.cluster, &new.cluster).await?;
    network::no_pod_reaches_into(fixture, &old.cluster, &new.cluster).await?;
    strangers::have_no_rights(fixture, &[&old, &new]).await?;
    for (one, other) in [(&old, &new), (&new, &old)] {
        let neighbour = Neighbour::of(&other.cluster, &other.guest).await?;
        one.cluster.scale(2).await?;
        one.cluster.has_workers(&one.guest, 2).await?;
        neighbour.is_untouched(&other.cluster, &other.guest).await?;
    }
    logs::hold_no_secret(fixture, &[&old, &new]).await?;

    let neighbour = Neighbour::of(&old.cluster, &old.guest).await?;
    new.cluster.destroy().await?;
    neighbour.is_untouched(&old.cluster, &old.guest).await?;
    old.guest.runs_a_workload(fixture).await?;
    old.cluster.destroy().await?;
    // With the last older cluster, its operator is removed automatically.
    fixture.legacy_goes().await?;
    platform.is_untouched(fixture).await
}

/// The older cluster is operator-legacy's, and marked so.
async fn taken_over(fixture: &Fixture, old: &Cluster<'_>) -> Result<()> {
    let path = DEPLOYMENTS.named(OPERATORS, LEGACY);
    fixture
        .stage("operator-legacy has taken over", async || {
            let deployment = fixture.testbed.admin.get(&path).await?;
            testbed::node::condition(&deployment, "Available")?;
            let annotations = old.seen().await?["metadata"]["annotations"].take();
            ensure!(
                annotations[SCOPE] == "legacy" && annotations[PRIVATE_CAPI_TYPES].is_null(),
                "{annotations}"
            );
            Ok(())
        })
        .await
}

// === impl Running ===

impl<'a> Running<'a> {
    /// Creates a cluster with programs that log at the highest verbosity, and joins a worker.
    async fn create(
        fixture: &'a Fixture,
        name: &str,
        capi_types: CapiTypes,
        flags: &[&str],
    ) -> Result<Self> {
        let cluster = Cluster::new(fixture, name, capi_types);
        cluster.create(flags).await?;
        let (guest, ()) = tokio::try_join!(cluster.comes_up(), verbose::make(fixture, &cluster))?;
        cluster.scale(1).await?;
        cluster.has_workers(&guest, 1).await?;
        guest.runs_a_workload(fixture).await?;
        cluster.rolled_out().await?;
        Ok(Self { cluster, guest })
    }
}
