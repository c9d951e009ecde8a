//! `destroy nodepool`.

use std::time::{Duration, Instant};

use anyhow::bail;
use clap::Args;
use kube::api::{DeleteParams, Preconditions};

use crate::hosted::{Hosted, nodes, refused};
use crate::install::display::Display;
use crate::install::{TargetArgs, runtime, time};

/// Between two looks.
const INTERVAL: Duration = Duration::from_secs(1);

/// Flags of `destroy nodepool`.
#[derive(Debug, Args)]
pub(crate) struct NodePool {
    /// Name of the node pool
    #[arg(long, value_name = "NAME")]
    name: String,

    /// Namespace of the node pool
    #[arg(long, value_name = "NAME", default_value = "clusters")]
    namespace: String,

    /// Time limit for the deletion of its machines
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = time)]
    timeout: Duration,

    /// Suppress progress output
    #[arg(long, short)]
    quiet: bool,

    #[command(flatten)]
    target: TargetArgs,
}

// === impl NodePool ===

impl NodePool {
    /// Destroys it, and waits until it is gone.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        runtime()?.block_on(async {
            let hosted = Hosted::connect(&self.target.access()).await?;
            self.destroy(&hosted).await
        })
    }

    async fn destroy(&self, hosted: &Hosted) -> anyhow::Result<()> {
        let display = Display::new(self.quiet);
        let pools = hosted.pools(&self.namespace);
        let named = format!("NodePool {}/{}", self.namespace, self.name);
        let found = pools.get_opt(&self.name).await;
        let Some(pool) =
            found.map_err(|error| refused(&error).context(format!("cannot read {named}")))?
        else {
            display.say(&format!(
                "{named}: there is none, so there is nothing to destroy"
            ));
            return Ok(());
        };
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: pool.metadata.uid,
                resource_version: None,
            }),
            ..DeleteParams::background()
        };
        let deleted = pools.delete(&self.name, &params).await;
        deleted.map_err(|error| refused(&error).context(format!("cannot delete {named}")))?;
        self.wait(hosted, &named, &display).await
    }

    async fn wait(&self, hosted: &Hosted, named: &str, display: &Display) -> anyhow::Result<()> {
        let deadline = Instant::now() + self.timeout;
        let mut step = display.step(&format!("waiting until {named} is gone"));
        loop {
            let found = hosted.pools(&self.namespace).get_opt(&self.name).await;
            let Some(pool) = found.map_err(|error| refused(&error))? else {
                step.done("gone");
                return Ok(());
            };
            let left = format!("{} nodes are left", nodes(&pool));
            if Instant::now() >= deadline {
                bail!(
                    "{named} still exists after {} s: {left}. The deletion continues; run the command again to wait for it",
                    self.timeout.as_secs()
                );
            }
            step.update(&left);
            tokio::time::sleep(INTERVAL).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::json;
    use support::testing::{Answer, Expect, Scenario};

    use super::*;

    const PATH: &str = "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters/nodepools/a";

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        pool: NodePool,
    }

    async fn destroy(scenario: &Scenario) -> anyhow::Result<()> {
        let pool = Command::parse_from(["destroy", "--name=a", "--quiet"]).pool;
        pool.destroy(&Hosted::new(scenario.client())).await
    }

    #[tokio::test]
    async fn a_pool_that_is_not_there_is_destroyed() {
        let absent = Expect::get(PATH).answer(Answer::error(404, "NotFound"));
        let scenario = Scenario::new([absent]);
        destroy(&scenario).await.unwrap();
        scenario.finish();
    }

    #[tokio::test]
    async fn the_pool_that_was_seen_is_deleted_and_waited_for() {
        let pool = json!({
            "apiVersion": "hypershift.openshift.io/v1beta1",
            "kind": "NodePool",
            "metadata": { "namespace": "clusters", "name": "a", "uid": "u" },
            "spec": {
                "clusterName": "a",
                "release": { "image": "registry.example.com/release:4.20.1" },
                "management": { "upgradeType": "Replace" },
                "platform": { "type": "None" },
            },
        });
        let scenario = Scenario::new([
            Expect::get(PATH).answer(Answer::ok(&pool)),
            Expect::delete(PATH)
                .body(json!({ "preconditions": { "uid": "u" } }))
                .answer(Answer::ok(&pool)),
            Expect::get(PATH).answer(Answer::error(404, "NotFound")),
        ]);
        destroy(&scenario).await.unwrap();
        scenario.finish();
    }
}
