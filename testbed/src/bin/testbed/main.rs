//! The testbed as a program: `cargo xtask demo` and `cargo xtask testbed` build it and run it.

mod demo;
mod embed;
mod manage;
mod programs;
mod release;
mod show;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// A management cluster on this machine.
#[derive(Debug, Parser)]
#[command(name = "testbed", bin_name = "cargo xtask testbed")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show the product: installed on a management cluster, stock Cluster API on private types, beside the platform's own.
    Demo(demo::Args),
    #[command(flatten)]
    Manage(manage::Command),
    /// Build the programs that testbeds run, from their pinned Go modules.
    Programs,
    /// Write the images of this tree as files, with their bills of materials and checksums: the same bytes anywhere.
    Release(release::Args),
    /// Fetch the CRDs of the pinned modules, which the next build of `hypershift` embeds.
    Embed,
}

fn main() -> ExitCode {
    let args = Args::parse();
    match run(args.command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Demo(args) => demo::run(&args).await,
        Command::Manage(command) => manage::run(&command).await,
        Command::Programs => programs::run().await,
        Command::Release(args) => release::run(&args).await,
        Command::Embed => embed::run().await,
    }
}
