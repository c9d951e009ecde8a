//! The command line: its verbs, and which module runs which.

use std::io;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use crate::program::Program;
use crate::{
    console_logs, crds, create, destroy, doctor, dump, fix, install, migrate, scale, uninstall,
    version,
};

/// Hosted control planes on private Cluster API types.
#[derive(Debug, Parser)]
#[command(name = "hypershift", version, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Work with Custom Resource Definitions (CRDs)
    #[command(subcommand)]
    Crds(crds::command::Command),
    /// Install or upgrade the operator
    Install(Box<install::Install>),
    /// Uninstall the operator; CRDs that still have objects are kept
    Uninstall(uninstall::Uninstall),
    #[command(flatten)]
    Clusters(Clusters),
    /// Get what machines of a hosted cluster wrote to their consoles
    #[command(subcommand, arg_required_else_help = true)]
    ConsoleLogs(console_logs::ConsoleLogs),
    /// Migrate Cluster API objects between the standard and the private API groups
    #[command(subcommand)]
    Migrate(migrate::Migrate),
    /// Report what is installed, which operator owns each hosted cluster, and what is wrong
    Doctor(doctor::command::Doctor),
    /// Print the versions of this command and of the operator
    Version(version::Version),
    /// Print a completion script for a shell
    #[command(alias = "completion", after_help = include_str!("args/completions.txt"))]
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// What is done with hosted clusters, by either program.
#[derive(Debug, Subcommand)]
enum Clusters {
    /// Create hosted clusters, node pools, and kubeconfigs
    #[command(subcommand)]
    Create(create::Create),
    /// Destroy hosted clusters and node pools
    #[command(subcommand)]
    Destroy(destroy::Destroy),
    /// Change the number of nodes
    #[command(subcommand)]
    Scale(scale::Scale),
    /// Dump the objects and logs of a hosted cluster to files
    #[command(subcommand)]
    Dump(dump::Dump),
    /// Fix what a hosted cluster needs outside of the management cluster, after a disaster
    #[command(subcommand, arg_required_else_help = true)]
    Fix(fix::Fix),
}

/// Runs what the command line asks for.
pub fn run(cli: Cli) -> anyhow::Result<()> {
    match cli.command {
        Command::Crds(command) => crds::command::run(command),
        Command::Install(install) => install::run(&install),
        Command::Uninstall(uninstall) => uninstall::run(&uninstall),
        Command::Clusters(clusters) => clusters.run(Program::Hypershift),
        Command::ConsoleLogs(logs) => console_logs::run(&logs),
        Command::Migrate(migrate) => migrate::run(&migrate),
        Command::Doctor(doctor) => doctor.run(),
        Command::Version(version) => version.run(),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "hypershift", &mut io::stdout());
            Ok(())
        }
    }
}

/// Create and manage hosted clusters; needs no permissions on the operator.
#[derive(Debug, Parser)]
#[command(name = "hcp", version, arg_required_else_help = true)]
pub struct Hcp {
    #[command(subcommand)]
    command: HcpCommand,
}

#[derive(Debug, Subcommand)]
enum HcpCommand {
    #[command(flatten)]
    Clusters(Clusters),
    /// Print the versions of this command and of the operator
    Version(version::Version),
    /// Print a completion script for a shell
    #[command(alias = "completion", after_help = include_str!("args/completions.txt"))]
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// Runs what the command line of `hcp` asks for.
pub fn run_hcp(hcp: Hcp) -> anyhow::Result<()> {
    match hcp.command {
        HcpCommand::Clusters(clusters) => clusters.run(Program::Hcp),
        HcpCommand::Version(version) => version.run(),
        HcpCommand::Completions { shell } => {
            clap_complete::generate(shell, &mut Hcp::command(), "hcp", &mut io::stdout());
            Ok(())
        }
    }
}

// === impl Clusters ===

impl Clusters {
    fn run(&self, program: Program) -> anyhow::Result<()> {
        match self {
            Self::Create(create) => create::run(create, program),
            Self::Destroy(destroy) => destroy::run(destroy),
            Self::Scale(scale) => scale::run(scale),
            Self::Dump(dump) => dump::run(dump),
            Self::Fix(fix) => fix::run(fix),
        }
    }
}

#[cfg(test)]
mod help;
#[cfg(test)]
mod parity;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
        Hcp::command().debug_assert();
    }
}
