//! `create cluster`: a HostedCluster, what it refers to, and node pools.
//!
//! `args` are the flags that all platforms share and `platform` those of each; `options` reads what they name;
//! `objects` makes objects of both, purely; `run` prints or applies them and waits.

mod args;
mod objects;
mod options;
mod platform;
mod release_stream;
mod run;
mod services;
mod ssh_key;
#[cfg(test)]
mod tests;

use clap::{Args, Subcommand};

use crate::install::runtime;
pub(super) use args::{Arch, UpgradeType, name_of};
use args::{CommonArgs, RunArgs};
pub(crate) use objects::{DELETED_WITH_CLUSTER, MADE_FOR};
use options::Options;
use platform::agent::AgentArgs;
pub(super) use platform::agent::AgentNodeArgs;
use platform::aws::AwsArgs;
pub(super) use platform::aws::AwsNodeArgs;
use platform::kubevirt::KubevirtArgs;
pub(super) use platform::kubevirt::KubevirtNodeArgs;
use platform::none::NoneArgs;
use platform::{Parts, Platform};
use release_stream::newest_release;

/// The platforms.
#[derive(Debug, Subcommand)]
pub(crate) enum Cluster {
    /// On machines that an Agent service offers
    #[command(after_help = include_str!("cluster/platform/agent.txt"))]
    Agent(Box<Of<AgentArgs>>),
    /// On instances of Amazon EC2
    #[command(after_help = include_str!("cluster/platform/aws.txt"))]
    Aws(Box<Of<AwsArgs>>),
    /// On virtual machines of KubeVirt
    #[command(after_help = include_str!("cluster/platform/kubevirt.txt"))]
    Kubevirt(Box<Of<KubevirtArgs>>),
    /// On machines that you bring yourself
    #[command(after_help = include_str!("cluster/platform/none.txt"))]
    None(Box<Of<NoneArgs>>),
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
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        match self {
            Self::Agent(of) => create(of),
            Self::Aws(of) => create(of),
            Self::Kubevirt(of) => create(of),
            Self::None(of) => create(of),
        }
    }
}

fn create<P: Args + Platform>(of: &Of<P>) -> anyhow::Result<()> {
    let (mut options, parts) = resolve(of)?;
    runtime()?.block_on(async {
        if let (None, Some(stream)) = (&of.common.release_image, &of.common.release_stream) {
            options.release_image = newest_release(stream).await?;
        }
        run::run(&options, &parts, &of.run).await
    })
}

/// Checks the arguments and reads the files that they name. Nothing is asked of any cluster.
fn resolve<P: Args + Platform>(of: &Of<P>) -> anyhow::Result<(Options, Parts)> {
    let parts = of.platform.parts(&of.common)?;
    Ok((Options::resolve(&of.common, &parts)?, parts))
}
