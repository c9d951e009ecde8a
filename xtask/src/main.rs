//! The project's one automation door: `cargo xtask <command>`. It needs Rust and Go, and sets up the rest by itself.

mod bench;
mod ci;
mod codegen;
mod demo;
mod embed;
mod show;
mod signals;
mod soak;
mod testbed;
mod tidy;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// The project's automation.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check everything: format, lints, docs, house rules, unit tests, tests on a real API server.
    Test(ci::Args),
    /// Show it work: installed on a management cluster, stock Cluster API on private types, beside the platform's own.
    Demo(demo::Args),
    /// Start, stop and look at testbeds.
    #[command(subcommand)]
    Testbed(testbed::Command),
    /// Measure.
    #[command(subcommand)]
    Bench(bench::Command),
    /// Run for a long time what tests run for seconds, and print the figures.
    #[command(subcommand)]
    Soak(soak::Soak),
    /// Fetch the CRDs of the pinned modules, for the next build of the hypershift binary to carry.
    Embed,
    /// Write what is made from the types of the api crate: CRDs and the API reference.
    Codegen(codegen::Args),
    /// Check the house rules that no compiler knows.
    Tidy,
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
        Command::Test(args) => ci::run(&args).await,
        Command::Demo(args) => demo::run(&args).await,
        Command::Testbed(command) => testbed::run(&command).await,
        Command::Bench(command) => bench::run(&command).await,
        Command::Soak(soak) => soak::run(&soak).await,
        Command::Embed => embed::run().await,
        Command::Codegen(args) => codegen::run(&args),
        Command::Tidy => tidy::run(),
    }
}
