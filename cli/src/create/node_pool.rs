//! `create nodepool`: machines of one kind for a hosted cluster that exists.

mod args;

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::cluster::{AgentNodeArgs, Arch, KubevirtNodeArgs, UpgradeType, name_of};
use crate::crds::output::{Format, stream};
use crate::hosted::Hosted;
use crate::install::display::{Display, print};
use crate::install::runtime;
use args::CommonArgs;

/// The platforms.
#[derive(Debug, Subcommand)]
pub(crate) enum NodePool {
    /// Agents
    Agent(Box<Of<AgentNodeArgs>>),
    /// Instances of Amazon EC2
    Aws(Box<Of<args::AwsPoolArgs>>),
    /// Virtual machines of KubeVirt
    Kubevirt(Box<Of<KubevirtNodeArgs>>),
}

/// The arguments of one platform.
#[derive(Debug, Args)]
pub(crate) struct Of<P: Args> {
    #[command(flatten)]
    common: CommonArgs,
    #[command(flatten, next_help_heading = "Platform")]
    platform: P,
}

/// What makes a NodePool.
#[derive(Debug)]
pub(super) struct Pool<'p> {
    pub(super) namespace: &'p str,
    pub(super) name: &'p str,
    pub(super) cluster: &'p str,
    pub(super) release: &'p str,
    pub(super) replicas: i32,
    pub(super) upgrade: UpgradeType,
    pub(super) auto_repair: bool,
    pub(super) arch: Arch,
    pub(super) drain: Option<Duration>,
    pub(super) detach: Option<Duration>,
    pub(super) platform: &'p Value,
}

/// The object.
pub(super) fn node_pool(pool: &Pool<'_>) -> Value {
    let mut management = json!({
        "upgradeType": name_of(pool.upgrade),
        "autoRepair": pool.auto_repair,
    });
    if pool.upgrade == UpgradeType::Replace {
        // Spelled out, so that the object reads as it will be.
        management["replace"] = json!({
            "strategy": "RollingUpdate",
            "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 },
        });
    }
    let mut spec = json!({
        "clusterName": pool.cluster,
        "release": { "image": pool.release },
        "platform": pool.platform,
        "replicas": pool.replicas,
        "arch": name_of(pool.arch),
        "management": management,
    });
    for (field, time) in [
        ("nodeDrainTimeout", pool.drain),
        ("nodeVolumeDetachTimeout", pool.detach),
    ] {
        if let Some(time) = time {
            spec[field] = json!(format!("{}s", time.as_secs()));
        }
    }
    json!({
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "NodePool",
        "metadata": { "namespace": pool.namespace, "name": pool.name },
        "spec": spec,
    })
}

// === impl NodePool ===

impl NodePool {
    /// Creates it, or prints what would be created.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        match self {
            Self::Agent(of) => of.common.run("Agent", of.platform.platform()?),
            Self::Aws(of) => of.common.run("AWS", of.platform.platform()),
            Self::Kubevirt(of) => of.common.run("KubeVirt", of.platform.platform()?),
        }
    }
}

// === impl CommonArgs ===

impl CommonArgs {
    fn run(&self, kind: &str, platform: Value) -> anyhow::Result<()> {
        if let (true, Some(release)) = (self.render, &self.release_image) {
            return print(&stream(&[self.object(release, &platform)], Format::Yaml)?);
        }
        runtime()?.block_on(self.create(kind, platform))
    }

    async fn create(&self, kind: &str, platform: Value) -> anyhow::Result<()> {
        let hosted = Hosted::connect(&self.target.access()).await?;
        let cluster = hosted.cluster(&self.namespace, &self.cluster_name).await?;
        let there = serde_json::to_value(cluster.spec.platform.type_)?;
        anyhow::ensure!(
            there == kind,
            "HostedCluster {}/{} is on platform {there}: its node pools cannot be on {kind}",
            self.namespace,
            self.cluster_name
        );
        let release = self.release_image.as_ref();
        let release = release.unwrap_or(&cluster.spec.release.image);
        let object = self.object(release, &platform);
        if self.render {
            return print(&stream(&[object], Format::Yaml)?);
        }
        hosted.create(&object, self.dry_run).await?;
        let done = if self.dry_run {
            "would be created"
        } else {
            "created"
        };
        Display::new(self.quiet).say(&format!(
            "NodePool {}/{}: {done}",
            self.namespace, self.name
        ));
        Ok(())
    }

    fn object(&self, release: &str, platform: &Value) -> Value {
        node_pool(&Pool {
            namespace: &self.namespace,
            name: &self.name,
            cluster: &self.cluster_name,
            release,
            replicas: self.replicas,
            upgrade: self.node_upgrade_type,
            auto_repair: self.auto_repair,
            arch: self.arch,
            drain: None,
            detach: None,
            platform,
        })
    }
}
