//! Waits for a hosted cluster, and shows what it waits for.

mod progress;

use std::time::{Duration, Instant};

use anyhow::bail;
use api::hypershift::v1beta1::hosted_cluster::HostedCluster;

use crate::hosted::Hosted;
use crate::install::display::Display;
use progress::{Progress, progress};

/// The finalizer of `destroy cluster`.
pub(crate) const HELD: &str = "openshift.io/destroy-cluster";
/// Between two looks.
const INTERVAL: Duration = Duration::from_secs(1);

/// Waits until a cluster is available and its nodes are there; without a limit if `timeout` is zero.
pub(crate) async fn until_available(
    hosted: &Hosted,
    namespace: &str,
    name: &str,
    timeout: Duration,
    display: &Display,
) -> anyhow::Result<()> {
    let deadline = (!timeout.is_zero()).then(|| Instant::now() + timeout);
    let mut step = display.step(&format!("waiting for HostedCluster {namespace}/{name}"));
    loop {
        let snapshot = Box::pin(hosted.snapshot(namespace, name)).await?;
        if snapshot.cluster.is_none() {
            bail!("HostedCluster {namespace}/{name} was deleted while waiting for it");
        }
        let waits = match progress(&snapshot) {
            Progress::Done => {
                step.done("available");
                return Ok(());
            }
            Progress::Waits(waits) => waits,
        };
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            bail!(
                "HostedCluster {namespace}/{name} is not available after {} s: {}",
                timeout.as_secs(),
                waits.join("; ")
            );
        }
        step.update(&waits.join("; "));
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Waits until a cluster is gone, and reports what still exists.
pub(crate) async fn until_gone(
    hosted: &Hosted,
    namespace: &str,
    name: &str,
    timeout: Duration,
    display: &Display,
) -> anyhow::Result<Gone> {
    let deadline = Instant::now() + timeout;
    let mut step = display.step(&format!(
        "waiting until HostedCluster {namespace}/{name} is gone"
    ));
    loop {
        let snapshot = Box::pin(hosted.snapshot(namespace, name)).await?;
        let pools = &snapshot.pools;
        let has_pools = !(pools.items.is_empty() && pools.unreadable.is_empty());
        let Some(cluster) = &snapshot.cluster else {
            step.done("gone");
            return Ok(Gone::Yes { has_pools });
        };
        if is_held(cluster) {
            step.done("gone, except for what is in the cloud");
            return Ok(Gone::Yes { has_pools });
        }
        let left = progress::left(cluster, &snapshot.pools);
        if Instant::now() >= deadline {
            return Ok(Gone::No { left });
        }
        step.update(&left);
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Whether only `destroy cluster` keeps a cluster, because its infrastructure in the cloud is still there.
fn is_held(cluster: &HostedCluster) -> bool {
    let metadata = &cluster.metadata;
    let finalizers = metadata.finalizers.as_deref().unwrap_or_default();
    metadata.deletion_timestamp.is_some() && finalizers == [HELD]
}

/// Whether a cluster has gone in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Gone {
    /// It has.
    Yes {
        /// Whether it has left node pools behind.
        has_pools: bool,
    },
    /// It has not.
    No {
        /// What is still there.
        left: String,
    },
}
