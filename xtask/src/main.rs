//! The project's automation: `cargo xtask <command>`. It needs Rust and Go, and sets up the rest by itself.
//!
//! This program depends on no other crate of the workspace, so that it is compiled in seconds. What needs more is a
//! program of another crate, which is built with cargo's own progress on the terminal and then run: see [`programs`].

mod advisories;
mod cargo;
mod ci;
mod codegen;
mod programs;
mod release;
mod soak;
mod sources;
mod tidy;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use programs::Program;

/// The project's automation.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check everything: format, lints, docs, house rules, unit tests, tests on a real API server
    Test(ci::Args),
    /// Show the product on a management cluster of this machine, beside the platform's own Cluster API
    Demo(Forwarded),
    /// Start, stop and list testbeds: `up`, `down`, `status`
    Testbed(Forwarded),
    /// Measure: `proxy`, `operators`, `control-plane`, `migration`
    Bench(Forwarded),
    /// Run for a long time what tests run for seconds, and print the figures
    #[command(subcommand)]
    Soak(soak::Soak),
    /// Write images as files, with their bills of materials and checksums: the same bytes wherever they are built; `cli`
    /// writes the program `hcp` for each platform
    Release(release::Args),
    /// Fetch the CRDs of the pinned modules, which the next builds of `hypershift` and `hypershift-operator` embed
    Embed,
    /// Write what is made from the types of the api crate: CRDs and the API reference
    Codegen(codegen::Args),
    /// Check the house rules that no compiler knows
    Tidy,
}

/// Arguments of a program that this one builds and runs: `--help` lists them.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
struct Forwarded {
    /// Arguments of the program
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
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

fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Test(args) => ci::run(&args),
        Command::Demo(args) => Program::TESTBED.run("demo", &args.arguments),
        Command::Testbed(args) => Program::TESTBED.run("", &args.arguments),
        Command::Bench(args) => Program::BENCH.run("", &args.arguments),
        Command::Soak(soak) => soak::run(&soak),
        Command::Release(args) => release::run(&args),
        Command::Embed => Program::TESTBED.run("embed", &[]),
        Command::Codegen(args) => codegen::run(&args),
        Command::Tidy => tidy::run(),
    }
}
