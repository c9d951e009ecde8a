//! `destroy cluster`.

mod aws;
mod azure;
mod cloud;
mod gcp;
mod held;
mod pools;
mod power_vs;

use std::fmt::Debug;
use std::time::Duration;

use anyhow::bail;
use api::annotations::cluster::{CLEANUP_CLOUD_RESOURCES, DESTROY_GRACE_PERIOD};
use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use clap::{Args, Subcommand};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Preconditions};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::create::{DELETED_WITH_CLUSTER, MADE_FOR};
use crate::hosted::{Hosted, nodes, refused};
use crate::install::cluster::status_code;
use crate::install::display::Display;
use crate::install::{TargetArgs, runtime, time};
use crate::waiting::{self, Gone};
use aws::AwsArgs;
use azure::AzureArgs;
use cloud::{Cloud, CloudArgs};
use gcp::GcpArgs;
use power_vs::PowerVsArgs;

/// The default of `--cluster-grace-period`.
const GRACE_PERIOD: Duration = Duration::from_mins(10);
/// What it is for clusters with private links on Azure.
const PRIVATE_LINK_GRACE_PERIOD: Duration = Duration::from_mins(20);

/// The platforms: that of the cluster must be given, so that no other cluster is destroyed by mistake.
#[derive(Debug, Subcommand)]
pub(crate) enum Cluster {
    /// A cluster on Agents
    Agent(ClusterArgs),
    /// A cluster on Amazon EC2, with the network and the IAM roles that were created for it
    Aws(Box<AwsArgs>),
    /// A cluster on virtual machines of Azure, with the resource groups and the role assignments that were created for it
    Azure(Box<AzureArgs>),
    /// A cluster on virtual machines of Google Cloud, with the network and the service accounts that were created for it
    Gcp(Box<GcpArgs>),
    /// A cluster on virtual machines of KubeVirt
    Kubevirt(ClusterArgs),
    /// A cluster on machines that users bring
    None(ClusterArgs),
    /// A cluster on virtual machines of OpenStack
    #[command(name = "openstack")]
    OpenStack(ClusterArgs),
    /// A cluster on IBM Power Virtual Servers, with the infrastructure that was created for it
    #[command(name = "powervs")]
    PowerVs(Box<PowerVsArgs>),
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

    /// Time limit for the deletion; 10m is 20m for clusters with private links on Azure
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = time)]
    cluster_grace_period: Duration,

    /// Name of the cluster in the infrastructure. It is needed only if the HostedCluster is gone and objects that were made
    /// for it are left
    #[arg(long, value_name = "ID")]
    infra_id: Option<String>,

    /// Delete the cloud resources of the cluster: load balancers, volumes, buckets [default: true; false on platforms agent
    /// and none, which have no cloud]
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    destroy_cloud_resources: Option<bool>,

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
            Self::Aws(args) => return args.run(),
            Self::Azure(args) => return args.run(),
            Self::Gcp(args) => return args.run(),
            Self::Kubevirt(args) => ("KubeVirt", args),
            Self::None(args) => ("None", args),
            Self::OpenStack(args) => ("OpenStack", args),
            Self::PowerVs(args) => return args.run(),
        };
        runtime()?.block_on(args.destroy(platform, None))
    }
}

// === impl ClusterArgs ===

impl ClusterArgs {
    /// Destroys the cluster, and its infrastructure with it.
    async fn destroy(&self, platform: &str, args: Option<CloudArgs<'_>>) -> anyhow::Result<()> {
        let display = Display::new(self.quiet);
        let hosted = Hosted::connect(&self.target.access()).await?;
        let named = format!("HostedCluster {}/{}", self.namespace, self.name);
        let Some(cluster) = hosted.find(&self.namespace, &self.name).await? else {
            let cloud = self.cloud(args, self.infra_id.as_ref(), &Value::Null)?;
            self.destroy_leftovers(&hosted, &named, &display).await?;
            return match &cloud {
                Some(cloud) if self.dry_run => cloud.report(&display).await,
                Some(cloud) => cloud.destroy(&display).await,
                None => Ok(()),
            };
        };
        let there = serde_json::to_value(cluster.spec.platform.type_)?;
        if there != platform {
            bail!("{named} is on platform {there}, not {platform}: nothing was destroyed");
        }
        let infra_id = cluster.spec.infra_id.as_ref();
        if let Some(given) = self.infra_id.as_ref()
            && infra_id.is_some_and(|infra_id| infra_id != given)
        {
            bail!(
                "{named} has infraID {}, not {given}: nothing was destroyed. Leave out --infra-id, or check --name",
                infra_id.map_or("", String::as_str)
            );
        }
        let spec = serde_json::to_value(&cluster.spec)?;
        // Without credentials nothing is begun.
        let cloud = self.cloud(args, infra_id, &spec)?;
        if self.dry_run {
            self.report(&hosted, &display).await?;
            return match &cloud {
                Some(cloud) => cloud.report(&display).await,
                None => Ok(()),
            };
        }
        if cluster.metadata.deletion_timestamp.is_none() {
            if cloud.is_some() {
                held::hold(&hosted, &cluster).await?;
            }
            self.mark(&hosted, &cluster, platform).await?;
            delete(&hosted, &cluster).await?;
        }
        self.wait(&hosted, self.patience(&spec), &display).await?;
        if let Some(cloud) = &cloud {
            cloud.destroy(&display).await?;
        }
        if let Some(infra_id) = infra_id {
            self.delete_made(&hosted, infra_id, &display).await?;
        }
        if args.is_some() {
            held::release(&hosted, &self.namespace, &self.name).await?;
        }
        Ok(())
    }

    /// What is destroyed in the cloud, if anything is.
    fn cloud(
        &self,
        args: Option<CloudArgs<'_>>,
        infra_id: Option<&String>,
        spec: &Value,
    ) -> anyhow::Result<Option<Cloud>> {
        let Some((args, infra_id)) = args.zip(infra_id) else {
            return Ok(None);
        };
        args.cloud(infra_id, &self.name, spec)
    }

    /// What is left of a cluster that is gone, if its infrastructure is named.
    async fn destroy_leftovers(
        &self,
        hosted: &Hosted,
        named: &str,
        display: &Display,
    ) -> anyhow::Result<()> {
        let Some(infra_id) = &self.infra_id else {
            display.say(&format!(
                "{named}: there is none, so there is nothing to destroy; with --infra-id, Secrets and ConfigMaps that were made for it are"
            ));
            return Ok(());
        };
        let clusters = hosted.clusters(&self.namespace);
        let clusters = clusters.list(&ListParams::default()).await;
        let clusters = clusters.map_err(|error| {
            refused(&error).context(format!(
                "failed to list HostedClusters of {}",
                self.namespace
            ))
        })?;
        let mut others = clusters.items.iter();
        if let Some(other) = others.find(|other| other.spec.infra_id.as_ref() == Some(infra_id)) {
            bail!(
                "--infra-id {infra_id} is that of HostedCluster {}/{}: nothing was destroyed. Check --name and --infra-id",
                self.namespace,
                other.metadata.name.as_deref().unwrap_or_default()
            );
        }
        if self.dry_run {
            display.say(&format!(
                "{named}: there is none; Secrets and ConfigMaps of {} with labels {} would be destroyed",
                self.namespace,
                made_for(infra_id)
            ));
            return Ok(());
        }
        self.delete_made(hosted, infra_id, display).await
    }

    /// What `create cluster` has made beside the cluster goes with it: its labels say so.
    async fn delete_made(
        &self,
        hosted: &Hosted,
        infra_id: &str,
        display: &Display,
    ) -> anyhow::Result<()> {
        let secrets = hosted.secrets(&self.namespace);
        self.delete_labelled("Secret", &secrets, infra_id, display)
            .await?;
        let config_maps = hosted.config_maps(&self.namespace);
        self.delete_labelled("ConfigMap", &config_maps, infra_id, display)
            .await
    }

    async fn delete_labelled<K: Clone + DeserializeOwned + Debug>(
        &self,
        kind: &str,
        api: &Api<K>,
        infra_id: &str,
        display: &Display,
    ) -> anyhow::Result<()> {
        let made = ListParams::default().labels(&made_for(infra_id));
        let cannot = |error: kube::Error| {
            refused(&error).context(format!(
                "HostedCluster {}/{} is gone, but not the {kind}s that were made for it: delete those with labels {}",
                self.namespace,
                self.name,
                made_for(infra_id)
            ))
        };
        for object in api.list_metadata(&made).await.map_err(cannot)? {
            let name = object.metadata.name.unwrap_or_default();
            match api.delete(&name, &DeleteParams::background()).await {
                Ok(_) => display.say(&format!("{kind} {}/{name}: deleted", self.namespace)),
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
            "HostedCluster {}/{}: would be destroyed, with namespace {control_plane} and the Secrets and ConfigMaps that were made for it",
            self.namespace, self.name
        ));
        Ok(())
    }

    /// What the operator must know before it begins.
    async fn mark(
        &self,
        hosted: &Hosted,
        cluster: &HostedCluster,
        platform: &str,
    ) -> anyhow::Result<()> {
        if !self.destroys_cloud_resources(platform) {
            return Ok(());
        }
        let annotations = cluster.metadata.annotations.clone().unwrap_or_default();
        if CLEANUP_CLOUD_RESOURCES.is_true(&annotations) {
            return Ok(());
        }
        let patch =
            json!({ "metadata": { "annotations": { CLEANUP_CLOUD_RESOURCES.key(): "true" } } });
        let marked = hosted.patch_cluster(&self.namespace, &self.name, &patch);
        marked.await.map_err(|error| {
            refused(&error)
                .context("cannot ask for the removal of cloud resources: nothing was destroyed")
        })
    }

    fn destroys_cloud_resources(&self, platform: &str) -> bool {
        let has_cloud = !matches!(platform, "Agent" | "None");
        self.destroy_cloud_resources.unwrap_or(has_cloud)
    }

    /// How long the deletion may take. That of a private link takes longer.
    fn patience(&self, spec: &Value) -> Duration {
        let topology = spec["platform"]["azure"]["topology"].as_str();
        let is_private = topology.is_some_and(|topology| topology != "Public");
        if is_private && self.cluster_grace_period == GRACE_PERIOD {
            return PRIVATE_LINK_GRACE_PERIOD;
        }
        self.cluster_grace_period
    }

    async fn wait(
        &self,
        hosted: &Hosted,
        patience: Duration,
        display: &Display,
    ) -> anyhow::Result<()> {
        let (namespace, name) = (&self.namespace, &self.name);
        match waiting::until_gone(hosted, namespace, name, patience, display).await? {
            Gone::Yes { has_pools: false } => Ok(()),
            Gone::Yes { has_pools: true } => {
                pools::delete(hosted, (namespace, name), patience, display).await
            }
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

#[cfg(test)]
mod tests;
