//! `scale`: how many nodes a node pool has.

use anyhow::{Context, bail};
use api::hypershift::v1beta1::node_pool::NodePool as Pool;
use clap::{Args, Subcommand};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::hosted::{FIELD_MANAGER, Hosted, refused};
use crate::install::display::Display;
use crate::install::{TargetArgs, runtime};

/// How often a write that conflicts with another is tried again.
const RETRIES: u8 = 10;

/// What can be scaled.
#[derive(Debug, Subcommand)]
pub(crate) enum Scale {
    /// Change the number of nodes of a node pool
    #[command(name = "nodepool")]
    NodePool(NodePool),
}

/// Flags of `scale nodepool`.
#[derive(Debug, Args)]
pub(crate) struct NodePool {
    /// Name of the node pool
    #[arg(long, value_name = "NAME")]
    name: String,

    /// Namespace of the node pool
    #[arg(long, value_name = "NAME", default_value = "clusters")]
    namespace: String,

    /// Number of nodes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..))]
    replicas: i32,

    /// Suppress progress output
    #[arg(long, short)]
    quiet: bool,

    #[command(flatten)]
    target: TargetArgs,
}

/// Runs `scale`.
pub(crate) fn run(scale: &Scale) -> anyhow::Result<()> {
    match scale {
        Scale::NodePool(pool) => runtime()?.block_on(pool.scale()),
    }
}

// === impl NodePool ===

impl NodePool {
    async fn scale(&self) -> anyhow::Result<()> {
        let hosted = Hosted::connect(&self.target.access()).await?;
        let before = self.scale_in(&hosted.pools(&self.namespace)).await?;
        let named = self.named();
        Display::new(self.quiet).say(&format!(
            "{named}: from {before} to {} nodes",
            self.replicas
        ));
        Ok(())
    }

    fn named(&self) -> String {
        format!("NodePool {}/{}", self.namespace, self.name)
    }

    /// Returns the number of nodes before.
    async fn scale_in(&self, pools: &Api<Pool>) -> anyhow::Result<i32> {
        let named = self.named();
        let mut retries = 0..RETRIES;
        loop {
            match self.attempt(pools, &named).await? {
                Ok(before) => return Ok(before),
                // The operator has written in between.
                Err(kube::Error::Api(status)) if status.code == 409 && retries.next().is_some() => {
                }
                Err(error) => return Err(refused(&error).context(format!("cannot scale {named}"))),
            }
        }
    }

    /// Scales the pool as it is now; returns the number of nodes before, or why the write failed.
    async fn attempt(&self, pools: &Api<Pool>, named: &str) -> anyhow::Result<kube::Result<i32>> {
        let found = pools.get_opt(&self.name).await;
        let pool = found
            .map_err(|error| refused(&error).context(format!("cannot read {named}")))?
            .with_context(|| format!("there is no {named}: check --namespace and --name"))?;
        if pool.spec.auto_scaling.is_some() {
            bail!(
                "{named} is scaled by the cluster autoscaler: change min and max under spec.autoScaling, or remove \
                 autoScaling first"
            );
        }
        // Autoscaling may be enabled in between.
        let patch = json!({
            "metadata": { "resourceVersion": pool.metadata.resource_version },
            "spec": { "replicas": self.replicas },
        });
        let params = PatchParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let scaled = pools
            .patch(&self.name, &params, &Patch::Merge(&patch))
            .await;
        Ok(scaled.map(|_| pool.spec.replicas.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::Value;
    use support::testing::{Answer, Expect, Scenario};

    use super::*;

    const PATH: &str = "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters/nodepools/demo";

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        pool: NodePool,
    }

    fn pool(version: &str, spec: &Value) -> Value {
        let mut pool = json!({
            "apiVersion": "hypershift.openshift.io/v1beta1",
            "kind": "NodePool",
            "metadata": { "namespace": "clusters", "name": "demo", "resourceVersion": version },
            "spec": {
                "clusterName": "demo",
                "release": { "image": "registry.example.com/release:4.20.1" },
                "management": { "upgradeType": "Replace" },
                "platform": { "type": "None" },
            },
        });
        for (key, value) in spec.as_object().into_iter().flatten() {
            pool["spec"][key] = value.clone();
        }
        pool
    }

    fn read(version: &str, spec: &Value) -> Expect {
        Expect::get(PATH).answer(Answer::ok(&pool(version, spec)))
    }

    fn write(version: &str, answer: Answer) -> Expect {
        let patch =
            json!({ "metadata": { "resourceVersion": version }, "spec": { "replicas": 0 } });
        Expect::patch(PATH).body(patch).answer(answer)
    }

    async fn scale(scenario: &Scenario) -> anyhow::Result<i32> {
        let pool = Command::parse_from(["scale", "--name=demo", "--replicas=0"]).pool;
        let pools = Api::namespaced(scenario.client(), "clusters");
        pool.scale_in(&pools).await
    }

    #[tokio::test]
    async fn a_write_that_conflicts_is_tried_again() {
        let (two, three) = (json!({ "replicas": 2 }), json!({ "replicas": 3 }));
        let scenario = Scenario::new([
            read("1", &two),
            write("1", Answer::error(409, "Conflict")),
            read("2", &three),
            write("2", Answer::ok(&pool("3", &json!({ "replicas": 0 })))),
        ]);
        assert_eq!(scale(&scenario).await.unwrap(), 3);
        scenario.finish();
    }

    /// The cluster autoscaler would change the number again.
    #[tokio::test]
    async fn autoscaling_that_was_enabled_in_between_is_respected() {
        let scenario = Scenario::new([
            read("1", &json!({ "replicas": 2 })),
            write("1", Answer::error(409, "Conflict")),
            read("2", &json!({ "autoScaling": { "min": 1, "max": 3 } })),
        ]);
        let error = scale(&scenario).await.unwrap_err().to_string();
        assert!(error.contains("spec.autoScaling"), "{error}");
        scenario.finish();
    }

    #[tokio::test]
    async fn conflicts_that_do_not_end_are_reported() {
        let rounds = (0..=RETRIES).flat_map(|_| {
            let two = json!({ "replicas": 2 });
            [read("1", &two), write("1", Answer::error(409, "Conflict"))]
        });
        let scenario = Scenario::new(rounds);
        let error = scale(&scenario).await.unwrap_err().to_string();
        assert_eq!(error, "cannot scale NodePool clusters/demo");
        scenario.finish();
    }
}
