//! A hosted cluster: made by the command that users have, and used by kubectl.

use std::time::Duration;

use anyhow::Result;
use api::group::CapiTypes;
use testbed::hosted::Cluster;
use testbed::wait;

use crate::demo::nodes::Stage;

/// Its name. Its control plane is in the namespace `clusters-hosted`.
const NAME: &str = "hosted";
const WORKERS: usize = 1;
/// How many workers it has, as a flag.
const REPLICAS: &str = "--node-pool-replicas=";
/// How long the provider may take to be deployed. Generous: a busy machine is no failure.
const DEPLOYED_WITHIN: Duration = Duration::from_mins(5);
/// What runs in it.
const WORKLOAD: &str = "hello";

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
    let image = format!("--image={}", stage.fixture.testbed.pause_image());
    let deployment = format!("deployment/{WORKLOAD}");
    inside(stage, &["create", "deployment", WORKLOAD, &image]).await?;
    inside(stage, &["rollout", "status", &deployment]).await
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
