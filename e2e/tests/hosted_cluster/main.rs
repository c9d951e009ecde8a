//! A hosted cluster for real: from an empty management cluster to workers that joined by their pool's user data, and back.
//!
//! What it does in a stage is in [`e2e::hosted`]. It needs root; without it, it says so and does nothing.

use anyhow::Result;
use api::group::Side;
use e2e::hosted::{self, Cluster, Ground};
use e2e::node::NodeTestbed;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hosted_cluster_comes_works_and_goes() -> Result<()> {
    hosted::play(NodeTestbed::builder("hosted-cluster"), scenario).await
}

async fn scenario(ground: &Ground) -> Result<()> {
    ground.install(Side::Private, &[]).await?;
    let cluster = Cluster::new(ground, "demo", Side::Private);
    cluster.create(&["--node-pool-replicas=1"]).await?;
    let guest = cluster.comes_up().await?;
    cluster.has_workers(&guest, 1).await?;
    guest.runs_a_workload(ground).await?;
    for count in [3, 0] {
        cluster.scale(count).await?;
        cluster.has_workers(&guest, count).await?;
    }
    cluster.destroy().await
}
