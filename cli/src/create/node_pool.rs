//! `create nodepool`: machines of one kind for a hosted cluster that exists.

mod args;
mod checks;
mod platform;
mod run;

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::cluster::{
    AgentNodeArgs, Arch, KubevirtNodeArgs, OpenStackNodeArgs, PowerVsNodeArgs, UpgradeType, name_of,
};
use args::CommonArgs;
use platform::{AwsPoolArgs, AzurePoolArgs};

/// The platforms.
#[derive(Debug, Subcommand)]
pub(crate) enum NodePool {
    /// Agents
    #[command(after_help = include_str!("node_pool/agent.txt"))]
    Agent(Box<Of<AgentNodeArgs>>),
    /// Instances of Amazon EC2
    #[command(after_help = include_str!("node_pool/aws.txt"))]
    Aws(Box<Of<AwsPoolArgs>>),
    /// Virtual machines of Azure
    #[command(after_help = include_str!("node_pool/azure.txt"))]
    Azure(Box<Of<AzurePoolArgs>>),
    /// Virtual machines of KubeVirt
    #[command(after_help = include_str!("node_pool/kubevirt.txt"))]
    Kubevirt(Box<Of<KubevirtNodeArgs>>),
    /// Virtual machines of OpenStack (technology preview)
    #[command(name = "openstack", after_help = include_str!("node_pool/openstack.txt"))]
    OpenStack(Box<Of<OpenStackNodeArgs>>),
    /// IBM Power Virtual Servers
    #[command(name = "powervs", after_help = include_str!("node_pool/power_vs.txt"))]
    PowerVs(Box<Of<PowerVsNodeArgs>>),
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
    pub(super) paused_until: Option<&'p str>,
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
        // Zero is no limit, as nothing is.
        if let Some(time) = time.filter(|time| !time.is_zero()) {
            spec[field] = json!(format!("{}s", time.as_secs()));
        }
    }
    if let Some(until) = pool.paused_until {
        spec["pausedUntil"] = json!(until);
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
            Self::Agent(of) => run::run(&of.common, &of.platform),
            Self::Aws(of) => run::run(&of.common, &of.platform),
            Self::Azure(of) => run::run(&of.common, &of.platform),
            Self::Kubevirt(of) => run::run(&of.common, &of.platform),
            Self::OpenStack(of) => run::run(&of.common, &of.platform),
            Self::PowerVs(of) => run::run(&of.common, &of.platform),
        }
    }
}

#[cfg(test)]
mod tests;
