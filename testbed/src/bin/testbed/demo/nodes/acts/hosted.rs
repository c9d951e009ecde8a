//! A hosted cluster: made by the command that users have, and used by kubectl.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use api::group::CapiTypes;
use serde_json::json;
use testbed::hosted::Cluster;
use testbed::{fixtures, wait};

use crate::demo::nodes::Stage;

/// Its name. Its control plane is in the namespace `clusters-hosted`.
const NAME: &str = "hosted";
const WORKERS: usize = 1;
/// How many workers it has, as a flag.
const REPLICAS: &str = "--node-pool-replicas=";
/// How long the provider may take to be deployed. Generous: a busy machine is no failure.
const DEPLOYED_WITHIN: Duration = Duration::from_mins(5);
/// What runs in it.
const WORKLOAD: &str = "workload";

/// The cluster.
pub(in crate::demo::nodes) fn cluster(stage: &Stage) -> Cluster<'_> {
    Cluster::new(&stage.fixture, NAME, CapiTypes::Private)
}

/// It is created, and what it waits for is printed until its worker has joined.
pub(super) async fn create(stage: &Stage) -> Result<()> {
    let cluster = cluster(stage);
    cluster.has_profile().await?;
    let note = "the cloud is a fake EC2 on this machine: its instances become nodes, and the provider is configured with its endpoints";
    stage.fixture.testbed.progress.note(note);
    let words = words(cluster.words()?);
    let deployed = wait::until("the provider of the cloud", DEPLOYED_WITHIN, async || {
        cluster.set_cloud_endpoints().await
    });
    tokio::try_join!(stage.types(&words), deployed)?;
    let namespace = cluster.namespace();
    stage
        .types(&["kubectl", "-n", &namespace, "get", "pods"])
        .await
}

/// The usual arguments, with a worker and with waiting.
fn words(usual: Vec<String>) -> Vec<String> {
    let mut words = vec!["hcp".to_owned()];
    words.extend(usual.into_iter().filter(|word| !word.starts_with(REPLICAS)));
    words.push(format!("{REPLICAS}{WORKERS}"));
    words.push("--wait".to_owned());
    words
}

/// The user gets its kubeconfig, and runs something in it.
pub(super) async fn is_used(stage: &Stage) -> Result<()> {
    let cluster = cluster(stage);
    let file = cluster.kubeconfig().display().to_string();
    let words = [
        "hcp",
        "create",
        "kubeconfig",
        "--name",
        NAME,
        "--output",
        &file,
    ];
    stage.types(&words).await?;
    let guest = cluster.guest().await?;
    guest.has_nodes(&stage.fixture, WORKERS).await?;
    let manifest = manifest(stage)?.display().to_string();
    inside(stage, &["apply", "--filename", &manifest]).await?;
    inside(
        stage,
        &[
            "rollout",
            "status",
            "--timeout=5m",
            &format!("deployment/{WORKLOAD}"),
        ],
    )
    .await
}

/// Writes the manifest of the workload: its pod has to meet the restricted pod security standard, which OpenShift enforces.
fn manifest(stage: &Stage) -> Result<PathBuf> {
    let testbed = &stage.fixture.testbed;
    let image = testbed.pause_image();
    let objects = fixtures::render("hosted_cluster/workload", &[("IMAGE", image.as_str())])?;
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects });
    let file = testbed.path().join(format!("{WORKLOAD}.json"));
    std::fs::write(&file, list.to_string())
        .with_context(|| format!("failed to write {}", file.display()))?;
    Ok(file)
}

/// The user looks at what runs in it, and where.
pub(super) async fn nodes(stage: &Stage) -> Result<()> {
    inside(stage, &["get", "pods", "--output=wide"]).await?;
    inside(stage, &["get", "nodes"]).await
}

/// The user types a command of kubectl's for the hosted cluster.
async fn inside(stage: &Stage, words: &[&str]) -> Result<()> {
    let file = cluster(stage).kubeconfig().display().to_string();
    let whole = [&["kubectl"], words, &["--kubeconfig", &file]].concat();
    stage.types(&whole).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_has_a_worker_and_waits() {
        let usual = ["create", "cluster", "--node-pool-replicas=0", "--name=a"];
        let words = words(usual.map(str::to_owned).to_vec());
        let expected = [
            "hcp",
            "create",
            "cluster",
            "--name=a",
            "--node-pool-replicas=1",
            "--wait",
        ];
        assert_eq!(words, expected);
    }
}
