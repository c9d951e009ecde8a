//! Flags of `create oadp-backup`, `create oadp-restore` and `create oadp-schedule`.

use std::time::Duration;

use api::hypershift::v1beta1::common;
use clap::{Args, ValueEnum};

use super::{cron, names, run};
use crate::install::{TargetArgs, runtime};

/// Flags of all three commands.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(super) struct CommonArgs {
    /// Name of the hosted cluster
    #[arg(long, value_name = "NAME", value_parser = names::checked)]
    pub(super) hc_name: String,

    /// Namespace of the hosted cluster
    #[arg(long, value_name = "NAME", value_parser = names::checked)]
    pub(super) hc_namespace: String,

    /// Name of the object that is created [default: name and namespace of the hosted cluster, and a random suffix]
    #[arg(long, value_name = "NAME", value_parser = names::checked)]
    pub(super) name: Option<String>,

    /// Namespace of OADP
    #[arg(long, value_name = "NAME", default_value = "openshift-adp", value_parser = names::checked)]
    pub(super) oadp_namespace: String,

    /// Further namespaces, separated by commas, such as the one with the hosts of an agent cluster; those of the hosted
    /// cluster and of its control plane are always included
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = names::checked)]
    pub(super) include_additional_namespaces: Vec<String>,

    /// Have the data of etcd in a snapshot that the plugin makes, instead of volumes; needs OADP 1.6
    #[arg(long)]
    pub(super) use_etcd_snapshot: bool,

    /// Print the objects as YAML, and create nothing; without a cluster they are those for AWS
    #[arg(long)]
    pub(super) render: bool,

    /// Check everything, and create nothing
    #[arg(long, conflicts_with = "render")]
    pub(super) dry_run: bool,

    /// Suppress progress output
    #[arg(long, short)]
    pub(super) quiet: bool,

    #[command(flatten)]
    pub(super) target: TargetArgs,
}

/// Flags of what a backup has.
#[derive(Debug, Args)]
pub(super) struct ContentArgs {
    /// Storage location of the backup
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(super) storage_location: String,

    /// How long a backup is kept, for example 720h
    #[arg(long, value_name = "TIME", default_value = "2h", value_parser = time_to_live)]
    pub(super) ttl: Duration,

    /// Copy snapshots of volumes to the storage location [default: true for a backup, false for a schedule]
    #[arg(long, value_name = "BOOL", action = clap::ArgAction::Set, num_args = 0..=1, default_missing_value = "true",
        conflicts_with = "use_etcd_snapshot")]
    pub(super) snapshot_move_data: Option<bool>,

    /// Back up volumes by their files instead of snapshots [default: false]
    #[arg(long, value_name = "BOOL", action = clap::ArgAction::Set, num_args = 0..=1, default_missing_value = "true",
        conflicts_with = "use_etcd_snapshot")]
    pub(super) default_volumes_to_fs_backup: Option<bool>,

    /// Resources to back up, separated by commas, such as secrets or nodepools.hypershift.openshift.io
    /// [default: those of the platform]
    #[arg(long, value_name = "RESOURCES", value_delimiter = ',')]
    pub(super) included_resources: Vec<String>,
}

/// Flags of `create oadp-backup`.
#[derive(Debug, Args)]
#[command(after_help = include_str!("backup.txt"))]
pub(crate) struct BackupArgs {
    #[command(flatten)]
    pub(super) common: CommonArgs,

    #[command(flatten)]
    pub(super) content: ContentArgs,
}

/// Flags of `create oadp-schedule`.
#[derive(Debug, Args)]
#[command(after_help = include_str!("schedule.txt"))]
pub(crate) struct ScheduleArgs {
    #[command(flatten)]
    pub(super) common: CommonArgs,

    #[command(flatten)]
    pub(super) content: ContentArgs,

    /// When backups are made: a cron expression with five fields, or a word such as daily, daily-2am, weekly-sunday or @monthly
    #[arg(long, value_name = "CRON", value_parser = cron::expression)]
    pub(super) schedule: String,

    /// Create the schedule in paused state
    #[arg(long)]
    pub(super) paused: bool,

    /// Delete the backups of the schedule with it
    #[arg(long)]
    pub(super) use_owner_references: bool,

    /// Make no backup as soon as the schedule exists
    #[arg(long)]
    pub(super) skip_immediately: bool,
}

/// Flags of `create oadp-restore`.
#[derive(Debug, Args)]
#[command(after_help = include_str!("restore.txt"))]
pub(crate) struct RestoreArgs {
    #[command(flatten)]
    pub(super) common: CommonArgs,

    /// Backup to restore, which has to be completed
    #[arg(
        long,
        value_name = "NAME",
        value_parser = names::checked,
        required_unless_present = "from_schedule",
        conflicts_with = "from_schedule"
    )]
    pub(super) from_backup: Option<String>,

    /// Schedule whose newest backup is restored, and which is not paused
    #[arg(long, value_name = "NAME", value_parser = names::checked)]
    pub(super) from_schedule: Option<String>,

    /// What happens to objects that exist
    #[arg(long, value_enum, value_name = "POLICY", default_value_t = ExistingResources::Update)]
    pub(super) existing_resource_policy: ExistingResources,

    /// Restore volumes [default: true]
    #[arg(long, value_name = "BOOL", action = clap::ArgAction::Set, num_args = 0..=1, default_missing_value = "true",
        conflicts_with = "use_etcd_snapshot")]
    pub(super) restore_pvs: Option<bool>,

    /// Keep the node ports of Services
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set,
        num_args = 0..=1, default_missing_value = "true")]
    pub(super) preserve_node_ports: bool,
}

/// What happens to objects that exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ExistingResources {
    /// They get what the backup has
    Update,
    /// They stay
    None,
}

// === impl ExistingResources ===

impl ExistingResources {
    /// The value of the field in a Restore.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Update => "update",
            Self::None => "none",
        }
    }
}

// === impl BackupArgs ===

impl BackupArgs {
    /// Creates a backup, or prints it.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        runtime()?.block_on(Box::pin(run::backup(self)))
    }
}

// === impl ScheduleArgs ===

impl ScheduleArgs {
    /// Creates a schedule, or prints it.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        runtime()?.block_on(Box::pin(run::schedule(self)))
    }
}

// === impl RestoreArgs ===

impl RestoreArgs {
    /// Creates a restore, or prints it.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        runtime()?.block_on(Box::pin(run::restore(self)))
    }
}

/// A time as in Kubernetes, of one second at least.
fn time_to_live(text: &str) -> Result<Duration, String> {
    let time = common::Duration(text.to_owned()).length();
    let time = time.map_err(|error| error.to_string())?;
    if time < Duration::from_secs(1) {
        return Err("write a time of at least 1s".to_owned());
    }
    Ok(time)
}
