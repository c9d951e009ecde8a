//! `cargo xtask bench`: figures, not tests. Nothing here fails because something is slow.

mod migration;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use bench::{Depth, control_plane, fleet, table, target};
use clap::{Args, Parser, Subcommand};
use serde_json::{Value, json};
use testbed::progress::Progress;
use testbed::signals::terminated;

/// Measures on this machine.
#[derive(Debug, Parser)]
#[command(name = "bench", bin_name = "cargo xtask bench")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// What to measure.
#[derive(Debug, Subcommand)]
enum Command {
    /// Compare our proxy with a TCP relay, nginx and `kubectl proxy`, in one run on this machine
    ///
    /// Takes about five minutes, and more the first time: it builds what it needs. Everything stays on loopback and
    /// ends with the command, also after Ctrl-C. Let nothing else run meanwhile.
    Proxy(Proxy),
    /// Move clusters of so many machines from the standard to the private groups: times, writes, a line through them
    ///
    /// The clusters are made without managers. Everything stays on loopback and ends with the command.
    Migration(migration::Migration),
    /// Benchmark hypershift-operator with 100 HostedClusters created at once and 1,000 at rest
    ///
    /// Takes about fifteen minutes, and more the first time. API server and etcd are real; control planes and nodes are
    /// simulated. Everything stays on loopback and ends with the command. Let nothing else run meanwhile.
    Operators(Operators),
    /// Measure control-plane-operator with one control plane: requests and memory at rest, processor time after a change
    ///
    /// Takes about three minutes, and more the first time. API server and operators are real; pods are simulated.
    /// Everything stays on loopback and ends with the command. Let nothing else run meanwhile.
    ControlPlane(ControlPlane),
}

/// Flags of `bench control-plane`.
#[derive(Debug, Args)]
struct ControlPlane {
    /// Take few samples, to check that the bench itself works; the figures are not meaningful
    #[arg(long)]
    quick: bool,
    /// Write all figures to this file, too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Flags of `bench operators`.
#[derive(Debug, Args)]
struct Operators {
    /// Take few samples, to check that the bench itself works; the figures are not meaningful
    #[arg(long)]
    quick: bool,
    /// Hosted clusters that are kept at last
    #[arg(long, value_name = "NUMBER")]
    fleet: Option<usize>,
    /// Write all figures to this file, too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Flags of `bench proxy`.
#[derive(Debug, Args)]
struct Proxy {
    /// Take few samples, in less than a minute, to check that the bench itself works
    #[arg(long)]
    quick: bool,
    /// Also write all figures and evaluations to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments.command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Measures and prints.
#[tokio::main]
async fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Migration(flags) => migration::run(flags).await,
        Command::Proxy(flags) => proxy(flags).await,
        Command::Operators(flags) => operators(flags).await,
        Command::ControlPlane(flags) => one_control_plane(flags).await,
    }
}

async fn one_control_plane(ControlPlane { quick, json }: &ControlPlane) -> Result<ExitCode> {
    let plan = if *quick {
        control_plane::Plan::QUICK
    } else {
        control_plane::Plan::FULL
    };
    let figures = tokio::select! {
        figures = control_plane::run(plan, Progress::detect()) => figures?,
        ended = terminated() => return ended.map(|()| ExitCode::FAILURE),
    };
    println!("{}", control_plane::render(&figures));
    if let Some(path) = json {
        write(path, &json!({ "figures": figures }))?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn operators(Operators { quick, fleet, json }: &Operators) -> Result<ExitCode> {
    let mut plan = if *quick {
        fleet::Plan::QUICK
    } else {
        fleet::Plan::FULL
    };
    plan.fleet = fleet.unwrap_or(plan.fleet).max(plan.burst);
    let figures = tokio::select! {
        figures = fleet::run(plan, Progress::detect()) => figures?,
        ended = terminated() => return ended.map(|()| ExitCode::FAILURE),
    };
    println!("{}", fleet::table::render(&figures));
    if let Some(path) = json {
        write(path, &json!({ "figures": figures }))?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn proxy(Proxy { quick, json }: &Proxy) -> Result<ExitCode> {
    let depth = if *quick { Depth::Quick } else { Depth::Full };
    let progress = Progress::detect();
    let figures = tokio::select! {
        figures = bench::run(depth, &progress) => figures?,
        ended = terminated() => return ended.map(|()| ExitCode::FAILURE),
    };
    println!("{}", table::render(&figures));
    if let Some(path) = json {
        write(
            path,
            &json!({ "figures": figures, "targets": target::evaluate(&figures) }),
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

fn write(path: &Path, document: &Value) -> Result<()> {
    std::fs::write(path, format!("{document:#}\n"))
        .with_context(|| format!("cannot write {}", path.display()))
}
