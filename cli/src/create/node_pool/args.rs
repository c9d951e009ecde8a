//! Flags of `create nodepool`.

use clap::Args;

use crate::create::cluster::{Arch, UpgradeType};
use crate::install::TargetArgs;

/// Flags that pools of all platforms share.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(super) struct CommonArgs {
    /// Name of the node pool
    #[arg(long, value_name = "NAME")]
    pub(super) name: String,

    /// Namespace of the hosted cluster
    #[arg(long, value_name = "NAME", default_value = "clusters")]
    pub(super) namespace: String,

    /// Name of the hosted cluster
    #[arg(long, value_name = "NAME")]
    pub(super) cluster_name: String,

    /// Number of nodes
    #[arg(long, alias = "node-count", value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(i32).range(0..))]
    pub(super) replicas: i32,

    /// Release image of the nodes [default: that of the hosted cluster]
    #[arg(long, value_name = "IMAGE")]
    pub(super) release_image: Option<String>,

    /// How nodes are upgraded [default: replaced; in place on platform agent]
    #[arg(long, value_enum)]
    pub(super) node_upgrade_type: Option<UpgradeType>,

    /// Processor architecture of the nodes
    #[arg(long, value_enum, default_value_t = Arch::Amd64)]
    pub(super) arch: Arch,

    /// Replace machines whose nodes stay unhealthy
    #[arg(long)]
    pub(super) auto_repair: bool,

    /// Print the object instead of creating it; with --release-image this needs no cluster, and on aws and azure with the
    /// flag of the subnet
    #[arg(long)]
    pub(super) render: bool,

    /// Validate the object with a server-side dry run, and create nothing
    #[arg(long)]
    pub(super) dry_run: bool,

    /// Suppress progress output
    #[arg(long, short)]
    pub(super) quiet: bool,

    #[command(flatten)]
    pub(super) target: TargetArgs,
}
