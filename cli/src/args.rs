//! The command line: its verbs, and which module runs which.

use std::io;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use crate::{crds, doctor, install, uninstall};

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
    /// Install the operator, or change how it is installed
    Install(Box<install::Install>),
    /// Take away what was installed, but for what holds somebody's objects
    Uninstall(uninstall::Uninstall),
    /// Find out what is installed, who owns what, and what is wrong
    Doctor(doctor::command::Doctor),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// Runs what the command line asks for.
pub fn run(cli: Cli) -> anyhow::Result<()> {
    match cli.command {
        Command::Crds(command) => crds::command::run(command),
        Command::Install(install) => install::run(&install),
        Command::Uninstall(uninstall) => uninstall::run(&uninstall),
        Command::Doctor(doctor) => doctor.run(),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "hypershift", &mut io::stdout());
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
