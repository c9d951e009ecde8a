//! The command line: one subcommand a program. Each module has the flags of its own.
//!
//! To add one: a module with `Args` and `pub(crate) fn run(args: ...) -> Result<(), E>`, a variant here, and an arm in
//! [`crate::run`].

use clap::{Parser, Subcommand};

use crate::{render, run};

/// Runs one hosted control plane, and helps its components.
#[derive(Debug, Parser)]
#[command(name = "control-plane-operator", version, max_term_width = 100, after_help = EXAMPLES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  In a pod, for the hosted control plane of its namespace:
    control-plane-operator run

  On your machine, to see what would be made, without a cluster:
    control-plane-operator render --hosted-control-plane hcp.yaml \\
      --release-images image-references --output out/";

/// What to do.
#[derive(Debug, Subcommand)]
#[non_exhaustive]
pub enum Command {
    /// Reconcile the hosted control plane of a namespace, until SIGTERM or SIGINT.
    Run(Box<run::Args>),
    /// Write all objects of a hosted control plane as YAML files, without a cluster.
    Render(Box<render::Args>),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
