//! `create cluster`: a HostedCluster, what it refers to, and node pools.
//!
//! `args` are the flags that all platforms share and `platform` those of each; `checks` refuses what makes no sense, and
//! `options` reads what they name; `given` is what a Secret has in place of flags; `objects` makes objects of both, purely;
//! `management` and `release_stream` look up what is not given; `run` prints or applies them and waits.

mod args;
mod checks;
mod given;
mod management;
mod objects;
mod options;
mod platform;
mod release_stream;
mod run;
mod services;
#[cfg(test)]
mod tests;
mod values;

use clap::{Args, Subcommand};
use payload::Minor;

use crate::install::runtime;
use crate::program::Program;
use crate::version;
pub(super) use args::{Arch, UpgradeType, name_of};
use args::{CommonArgs, RunArgs};
use checks::check_run;
pub(crate) use objects::{DELETED_WITH_CLUSTER, MADE_FOR};
use options::Options;
use platform::agent::AgentArgs;
pub(super) use platform::agent::AgentNodeArgs;
use platform::aws::AwsArgs;
pub(super) use platform::aws::AwsNodeArgs;
use platform::azure::AzureArgs;
pub(super) use platform::azure::{AzureNodeArgs, AzurePlace};
use platform::gcp::GcpArgs;
use platform::kubevirt::KubevirtArgs;
pub(super) use platform::kubevirt::KubevirtNodeArgs;
use platform::none::NoneArgs;
use platform::openstack::OpenStackArgs;
pub(super) use platform::openstack::OpenStackNodeArgs;
use platform::power_vs::PowerVsArgs;
pub(super) use platform::power_vs::PowerVsNodeArgs;
use platform::{Parts, Platform};
use release_stream::newest_release;
pub(crate) use values::Capability;

/// The platforms.
#[derive(Debug, Subcommand)]
pub(crate) enum Cluster {
    /// On machines that an Agent service offers
    #[command(after_help = include_str!("cluster/platform/agent.txt"))]
    Agent(Box<Of<AgentArgs>>),
    /// On instances of Amazon EC2
    #[command(after_help = include_str!("cluster/platform/aws.txt"))]
    Aws(Box<Of<AwsArgs>>),
    /// On virtual machines of Azure
    #[command(after_help = include_str!("cluster/platform/azure.txt"))]
    Azure(Box<Of<AzureArgs>>),
    /// On virtual machines of Google Cloud (technology preview)
    #[command(after_help = include_str!("cluster/platform/gcp.txt"))]
    Gcp(Box<Of<GcpArgs>>),
    /// On virtual machines of KubeVirt
    #[command(after_help = include_str!("cluster/platform/kubevirt.txt"))]
    Kubevirt(Box<Of<KubevirtArgs>>),
    /// On machines that you bring yourself
    #[command(after_help = include_str!("cluster/platform/none.txt"))]
    None(Box<Of<NoneArgs>>),
    /// On virtual machines of OpenStack (technology preview)
    #[command(name = "openstack", after_help = include_str!("cluster/platform/openstack.txt"))]
    OpenStack(Box<Of<OpenStackArgs>>),
    /// On IBM Power Virtual Servers
    #[command(name = "powervs", after_help = include_str!("cluster/platform/power_vs.txt"))]
    PowerVs(Box<Of<PowerVsArgs>>),
}

/// The arguments of one platform.
#[derive(Debug, Args)]
pub(crate) struct Of<P: Args> {
    #[command(flatten)]
    common: CommonArgs,
    #[command(flatten, next_help_heading = "Platform")]
    platform: P,
    #[command(flatten, next_help_heading = "This command")]
    run: RunArgs,
}

// === impl Cluster ===

impl Cluster {
    /// Creates it, or prints what would be created.
    pub(crate) fn run(&self, program: Program) -> anyhow::Result<()> {
        match self {
            Self::Agent(of) => create(of, program),
            Self::Aws(of) => create(of, program),
            Self::Azure(of) => create(of, program),
            Self::Gcp(of) => create(of, program),
            Self::Kubevirt(of) => create(of, program),
            Self::None(of) => create(of, program),
            Self::OpenStack(of) => create(of, program),
            Self::PowerVs(of) => create(of, program),
        }
    }
}

fn create<P: Args + Platform>(of: &Of<P>, program: Program) -> anyhow::Result<()> {
    check_run(&of.run)?;
    let access = of.run.target.access();
    let runtime = runtime()?;
    let given = runtime.block_on(of.platform.given(&of.common, &of.run))?;
    let common = of.common.clone().with(given);
    let (mut options, mut parts) = resolve(&common, &of.platform, program)?;
    runtime.block_on(async {
        if parts.services.lack_address() {
            let address = Box::pin(management::address(&access, P::ADDRESS_FLAG)).await?;
            parts.services = parts.services.at(address);
        }
        if let Some(stream) = &options.release_stream {
            let limit = if of.run.renders() {
                Minor::NEWEST
            } else {
                let namespace = &of.run.operator_namespace;
                Box::pin(version::newest_supported(&access, namespace)).await?
            };
            options.release_image = Box::pin(newest_release(stream, limit)).await?;
        }
        let provided = of.platform.provide(&common, &options, &of.run).await?;
        parts = provided.unwrap_or(parts);
        run::run(&options, &parts, &of.run).await
    })
}

/// Checks the arguments and reads the files that they name. Nothing is asked of any cluster.
fn resolve<P: Platform>(
    common: &CommonArgs,
    platform: &P,
    program: Program,
) -> anyhow::Result<(Options, Parts)> {
    let parts = platform.parts(common)?;
    Ok((Options::resolve(common, &parts, program)?, parts))
}
