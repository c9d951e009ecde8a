//! `cargo xtask test`: one list of steps, each timed.

mod cargo;
mod fuzz;
mod lanes;
mod steps;
mod tally;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use e2e::wait::seconds;

use crate::tidy;
use steps::Step;
use tally::Tally;

/// How many of the slowest steps the summary names.
const SLOWEST: usize = 5;
/// What a clean clone writes in all, with some to spare, in bytes.
const DISK: u64 = 12_000_000_000;

/// Which steps to run.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run only this step; may be given several times.
    #[arg(long, value_name = "STEP")]
    only: Vec<String>,
    /// List the steps and do nothing.
    #[arg(long)]
    list: bool,
}

/// What became of a step.
#[derive(Debug)]
struct Outcome {
    step: &'static str,
    took: Duration,
    tally: Tally,
}

/// Runs the steps, all of them whatever fails, and sums up.
pub(crate) async fn run(args: &Args) -> Result<ExitCode> {
    if args.list {
        for step in steps::ALL {
            println!("{:<10} {}", step.name, step.what);
        }
        return Ok(ExitCode::SUCCESS);
    }
    warn_of_a_small_disk();
    let mut outcomes = Vec::new();
    for step in chosen(&args.only)? {
        outcomes.push(run_step(step).await);
    }
    Ok(sum_up(&outcomes))
}

/// A full disk shows as failures of anything: better said beforehand.
fn warn_of_a_small_disk() {
    let Ok(disk) = rustix::fs::statvfs(tidy::root().as_path()) else {
        return;
    };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    if free < DISK {
        println!(
            "warning: {} GB are free here; a clean clone needs up to {} GB: `rm -rf target` frees what earlier builds left",
            free / 1_000_000_000,
            DISK / 1_000_000_000
        );
    }
}

fn chosen(only: &[String]) -> Result<Vec<&'static Step>> {
    for name in only {
        if !steps::ALL.iter().any(|step| step.name == name) {
            bail!("there is no step called {name}: cargo xtask test --list names them");
        }
    }
    Ok(steps::ALL
        .iter()
        .filter(|step| only.is_empty() || only.iter().any(|name| step.name == name))
        .collect())
}

async fn run_step(step: &'static Step) -> Outcome {
    println!("\n=== {}: {}", step.name, step.what);
    let start = Instant::now();
    let tally = match (step.run)().await {
        Ok(tally) => tally,
        Err(error) => {
            println!("{error:#}");
            Tally::failure()
        }
    };
    let took = start.elapsed();
    println!("=== {}: {tally} ({})", step.name, seconds(took));
    Outcome {
        step: step.name,
        took,
        tally,
    }
}

fn sum_up(outcomes: &[Outcome]) -> ExitCode {
    let total = outcomes
        .iter()
        .fold(Tally::default(), |total, outcome| total + outcome.tally);
    let mut slowest: Vec<_> = outcomes.iter().collect();
    slowest.sort_by_key(|outcome| std::cmp::Reverse(outcome.took));
    println!("\nslowest steps:");
    for outcome in slowest.iter().take(SLOWEST) {
        println!("  {:<10} {}", outcome.step, seconds(outcome.took));
    }
    let failed = outcomes.iter().filter(|outcome| outcome.tally.failed > 0);
    for outcome in failed {
        println!(
            "failed: {} (again: cargo xtask test --only {})",
            outcome.step, outcome.step
        );
    }
    println!("{total}");
    match total.failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
