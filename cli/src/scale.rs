//! `scale`: how many nodes a node pool has.

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::hosted::{FIELD_MANAGER, Hosted, refused};
use crate::install::display::Display;
use crate::install::{TargetArgs, runtime};

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
        let pools = hosted.pools(&self.namespace);
        let named = format!("NodePool {}/{}", self.namespace, self.name);
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
        scaled.map_err(|error| refused(&error).context(format!("cannot scale {named}")))?;
        let before = pool.spec.replicas.unwrap_or_default();
        Display::new(self.quiet).say(&format!(
            "{named}: from {before} to {} nodes",
            self.replicas
        ));
        Ok(())
    }
}
