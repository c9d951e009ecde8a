//! `destroy cluster`.

use std::time::Duration;

use anyhow::bail;
use api::annotations::cluster::{CLEANUP_CLOUD_RESOURCES, DESTROY_GRACE_PERIOD};
use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use clap::{Args, Subcommand};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions};
use serde_json::json;

use crate::create::{DELETED_WITH_CLUSTER, MADE_FOR};
use crate::hosted::{FIELD_MANAGER, Hosted, nodes, refused};
use crate::install::cluster::status_code;
use crate::install::display::Display;
use crate::install::{TargetArgs, runtime, time};
use crate::waiting::{self, Gone};

/// The platforms: that of the cluster must be given, so that no other cluster is destroyed by mistake.
#[derive(Debug, Subcommand)]
pub(crate) enum Cluster {
    /// A cluster on Agents
    Agent(ClusterArgs),
    /// A cluster on Amazon EC2; its network and its IAM roles are kept
    Aws(ClusterArgs),
    /// A cluster on virtual machines of KubeVirt
    Kubevirt(ClusterArgs),
    /// A cluster on machines that users bring
    None(ClusterArgs),
}

/// Flags of all platforms.
#[derive(Debug, Args)]
pub(crate) struct ClusterArgs {
    /// Name of the cluster
    #[arg(long, value_name = "NAME")]
    name: String,

    /// Namespace of the HostedCluster
    #[arg(long, value_name = "NAME", default_value = "clusters")]
    namespace: String,

    /// Time limit for the deletion
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = time)]
    cluster_grace_period: Duration,

    /// Delete the cloud resources of the cluster: load balancers, volumes, buckets
    #[arg(long)]
    destroy_cloud_resources: bool,

    /// Print what would be destroyed, and destroy nothing
    #[arg(long)]
    dry_run: bool,

    /// Suppress progress output
    #[arg(long, short)]
    quiet: bool,

    #[command(flatten)]
    target: TargetArgs,
}

// === impl Cluster ===

impl Cluster {
    /// Destroys it, and waits until it is gone.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let (platform, args) = match self {
            Self::Agent(args) => ("Agent", args),
            Self::Aws(args) => ("AWS", args),
            Self::Kubevirt(args) => ("KubeVirt", args),
            Self::None(args) => ("None", args),
        };
        runtime()?.block_on(args.destroy(platform))
    }
}

// === impl ClusterArgs ===

impl ClusterArgs {
    async fn destroy(&self, platform: &str) -> anyhow::Result<()> {
        let display = Display::new(self.quiet);
        let hosted = Hosted::connect(&self.target.access()).await?;
        let named = format!("HostedCluster {}/{}", self.namespace, self.name);
        let Some(cluster) = hosted.find(&self.namespace, &self.name).await? else {
            display.say(&format!(
                "{named}: there is none, so there is nothing to destroy"
            ));
            return Ok(());
        };
        let there = serde_json::to_value(cluster.spec.platform.type_)?;
        if there != platform {
            bail!("{named} is on platform {there}, not {platform}: nothing was destroyed");
        }
        if self.dry_run {
            return self.report(&hosted, &display).await;
        }
        if cluster.metadata.deletion_timestamp.is_none() {
            self.mark(&hosted, &cluster).await?;
            delete(&hosted, &cluster).await?;
        }
        self.wait(&hosted, &display).await?;
        self.delete_secrets(&hosted, &cluster, &display).await
    }

    /// What `create cluster` has made beside the cluster goes with it: its labels say so.
    async fn delete_secrets(
        &self,
        hosted: &Hosted,
        cluster: &HostedCluster,
        display: &Display,
    ) -> anyhow::Result<()> {
        let Some(infra_id) = &cluster.spec.infra_id else {
            return Ok(());
        };
        let secrets = hosted.secrets(&self.namespace);
        let made = ListParams::default().labels(&made_for(infra_id));
        let cannot = |error: kube::Error| {
            refused(&error).context(format!(
                "HostedCluster {}/{} is gone, but not the Secrets that were made for it: delete those with labels {}",
                self.namespace,
                self.name,
                made_for(infra_id)
            ))
        };
        for secret in secrets.list_metadata(&made).await.map_err(cannot)? {
            let name = secret.metadata.name.unwrap_or_default();
            match secrets.delete(&name, &DeleteParams::background()).await {
                Ok(_) => display.say(&format!("Secret {}/{name}: deleted", self.namespace)),
                Err(error) if status_code(&error) == Some(404) => {}
                Err(error) => return Err(cannot(error)),
            }
        }
        Ok(())
    }

    async fn report(&self, hosted: &Hosted, display: &Display) -> anyhow::Result<()> {
        let pools = hosted.pools_of(&self.namespace, &self.name).await;
        let pools = pools.map_err(|error| refused(&error))?;
        for pool in &pools.unreadable {
            display.say(&format!(
                "NodePool {}: would be destroyed ({pool})",
                pool.name
            ));
        }
        for pool in pools.items {
            let nodes = nodes(&pool);
            let name = pool.metadata.name.unwrap_or_default();
            display.say(&format!(
                "NodePool {}/{name}: would be destroyed, with {nodes} nodes",
                self.namespace
            ));
        }
        let control_plane = api::names::control_plane_namespace(&self.namespace, &self.name);
        display.say(&format!(
            "HostedCluster {}/{}: would be destroyed, with namespace {control_plane} and the Secrets that were made for it",
            self.namespace, self.name
        ));
        Ok(())
    }

    /// What the operator must know before it begins.
    async fn mark(&self, hosted: &Hosted, cluster: &HostedCluster) -> anyhow::Result<()> {
        if !self.destroy_cloud_resources {
            return Ok(());
        }
        let annotations = cluster.metadata.annotations.clone().unwrap_or_default();
        if CLEANUP_CLOUD_RESOURCES.is_true(&annotations) {
            return Ok(());
        }
        let patch =
            json!({ "metadata": { "annotations": { CLEANUP_CLOUD_RESOURCES.key(): "true" } } });
        let params = PatchParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let marked = hosted
            .clusters(&self.namespace)
            .patch_metadata(&self.name, &params, &Patch::Merge(&patch))
            .await;
        marked.map(drop).map_err(|error| {
            refused(&error)
                .context("cannot ask for the removal of cloud resources: nothing was destroyed")
        })
    }

    async fn wait(&self, hosted: &Hosted, display: &Display) -> anyhow::Result<()> {
        let (namespace, name) = (&self.namespace, &self.name);
        let patience = self.cluster_grace_period;
        match waiting::until_gone(hosted, namespace, name, patience, display).await? {
            Gone::Yes => Ok(()),
            Gone::No { left } => bail!(
                "HostedCluster {namespace}/{name} still exists after {} s: {left}. The deletion continues; run the command \
                 again to wait for it. The annotation {} may delay it",
                patience.as_secs(),
                DESTROY_GRACE_PERIOD.key()
            ),
        }
    }
}

/// The labels of what was made for an infrastructure, and goes with its cluster.
fn made_for(infra_id: &str) -> String {
    format!("{DELETED_WITH_CLUSTER}=true,{MADE_FOR}={infra_id}")
}

/// Deletes a cluster if it is the very one that was seen.
async fn delete(hosted: &Hosted, cluster: &HostedCluster) -> anyhow::Result<()> {
    let namespace = cluster.metadata.namespace.as_deref().unwrap_or_default();
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: cluster.metadata.uid.clone(),
            resource_version: None,
        }),
        ..DeleteParams::background()
    };
    let deleted = hosted.clusters(namespace).delete(name, &params).await;
    deleted.map(drop).map_err(|error| {
        refused(&error).context(format!("cannot delete HostedCluster {namespace}/{name}"))
    })
}
