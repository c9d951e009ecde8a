//! A worker fails without notice, and a new one replaces it.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use testbed::hosted::{Cluster, Fixture, Guest};
use testbed::node::condition;

/// Kills the machine of one worker of the pool, which has `count`. The cloud continues saying that it runs.
pub(crate) async fn replaces_a_dead_worker(
    fixture: &Fixture,
    cluster: &Cluster<'_>,
    guest: &Guest,
    count: usize,
) -> Result<()> {
    let before = cluster.machines().await?;
    let victim = before.first().context("there is no machine")?;
    let (machine, uid) = (name(victim), victim["metadata"]["uid"].clone());
    let node = victim["status"]["nodeRef"]["name"]
        .as_str()
        .context("it has no node")?;
    let id = victim["spec"]["providerID"].as_str().unwrap_or_default();
    let instance = id.rsplit('/').next().context("it has no instance")?;
    fixture.testbed.progress.note(&format!(
        "killing {instance}, which is {machine} and {node}"
    ));
    fixture.cloud.kill(instance);
    fixture
        .stage("the failed worker's node is not ready", async || {
            let found = guest.client.get(&format!("/api/v1/nodes/{node}")).await?;
            ensure!(condition(&found, "Ready").is_err(), "it is ready");
            Ok(())
        })
        .await?;
    fixture
        .stage("its machine and its instance are gone", async || {
            let machines = cluster.machines().await?;
            ensure!(
                machines.iter().all(|one| one["metadata"]["uid"] != uid),
                "{machine} is there"
            );
            let instances = cluster.instances().await?;
            ensure!(
                instances.iter().all(|one| one.id != instance),
                "{instance} runs"
            );
            Ok(())
        })
        .await?;
    cluster.has_workers(guest, count).await
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}
