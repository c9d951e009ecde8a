//! The command line: its verbs, and which module runs which.

use std::io;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use crate::crds;

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
