//! AutoNode: the released Karpenter makes a node for a pod that does not fit, and removes it when it is not needed; it
//! replaces nodes whose class has changed, and after an upgrade of the control plane, not before.
//!
//! The cluster is created in an empty account of the fake cloud, which is as before when it is destroyed. Prices are those
//! that Karpenter was built with, and its nodes have no kube-proxy, which the testbed gives to NodePools only. It needs root;
//! without it, it reports so and passes.

mod auto_node;
mod nodes;
mod versions;

use anyhow::{Result, ensure};
use api::group::CapiTypes;
use testbed::hosted::{self, Cluster, Fixture, Platform};
use testbed::node::NodeTestbed;

use crate::hosted_cluster::timeline;
use auto_node::AutoNode;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: cargo xtask soak karpenter"]
async fn karpenter_makes_replaces_and_removes_nodes() -> Result<()> {
    hosted::play_with_karpenter(NodeTestbed::builder("karpenter"), scenario).await
}

async fn scenario(fixture: &Fixture) -> Result<()> {
    let cloud = &fixture.cloud.client;
    cloud.create_public_zone("testbed").await?;
    let before = cloud.account().await?;
    fixture.install(CapiTypes::Private, &[]).await?;
    let cluster = Cluster::on(fixture, "auto", CapiTypes::Private, Platform::AwsAutoNode);
    cluster.create(&["--node-pool-replicas=1"]).await?;
    let guest = cluster.comes_up().await?;
    timeline::show(fixture, &cluster).await?;
    cluster.has_workers(&guest, 1).await?;
    let auto_node = AutoNode {
        fixture,
        cluster: &cluster,
        guest: &guest,
    };
    auto_node.is_enabled().await?;
    nodes::come_and_go(&auto_node).await?;
    cluster.holds_invariants(&guest, true).await?;
    let node = nodes::are_replaced_when_their_class_changes(&auto_node).await?;
    let node = versions::follow_the_control_plane(&auto_node, &node).await?;
    versions::of_classes_are_refused(&auto_node, &node).await?;
    is_destroyed(&auto_node, &before).await
}

/// The cluster is destroyed while Karpenter has a node, and leaves nothing in the account.
async fn is_destroyed(auto_node: &AutoNode<'_>, before: &[String]) -> Result<()> {
    let AutoNode { cluster, .. } = auto_node;
    let running = cluster.instances_of_karpenter().await?;
    ensure!(running.len() == 1, "{running:?} run");
    // The containers of an upgraded control plane may have restarted.
    cluster.is_destroyed().await?;
    let left = cluster.instances_of_karpenter().await?;
    ensure!(left.is_empty(), "{left:?} run");
    auto_node.fixture.cloud.client.has_only(before).await
}
