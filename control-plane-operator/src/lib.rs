//! The operator of one hosted control plane, and the helpers of its components: one binary with subcommands.
//!
//! - [`component::sidecar`]: the proxy beside every controller that speaks Cluster API.

pub mod args;
pub mod component;
pub mod error;
pub mod render;
pub mod run;
pub mod settings;

use args::{Cli, Command};

/// Runs a command line.
pub fn run(cli: Cli) -> Result<(), error::Failure> {
    match cli.command {
        Command::Run(args) => Ok(run::run(*args)?),
        Command::Render(args) => Ok(render::run(&args)?),
    }
}
