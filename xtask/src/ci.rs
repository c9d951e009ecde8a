//! `cargo xtask test`: a list of steps, each timed. Everything is built once, with the flags of [`crate::cargo`].

mod built;
mod fuzz;
mod runner;
mod schedule;
mod steps;
mod summary;
mod tally;
mod times;
mod weights;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, bail};

use crate::programs::announce;
use crate::sources::root;
use built::Built;
use steps::Step;
use summary::{Outcome, Part, seconds};
use tally::Tally;

/// What a clean clone writes in all, with some to spare, in bytes.
const DISK: u64 = 12_000_000_000;

/// Which steps to run.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run only this step; may be given several times
    #[arg(long, value_name = "STEP")]
    only: Vec<String>,
    /// Run only tests with this text in their name (steps unit and e2e)
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// How many units of work run at once in step e2e: most tests are 1 unit, tests with nodes 2 or 3 [default: by processors
    /// and memory]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(2..))]
    units: Option<u32>,
    /// List the steps and do nothing
    #[arg(long)]
    list: bool,
}

/// What steps share.
#[derive(Debug)]
struct Gate {
    built: Built,
    filter: String,
    units: Option<u32>,
    /// Tests that took time, for the summary.
    parts: Vec<Part>,
}

/// Runs the steps, all of them whatever fails, and sums up.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if args.list {
        for step in steps::ALL {
            println!("{:<10} {}", step.name, step.what);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let steps = selected(&args.only)?;
    let names: Vec<_> = steps.iter().map(|step| step.name).collect();
    announce(&format!("steps: {}", names.join(", ")));
    warn_of_a_small_disk();
    let mut gate = Gate {
        built: Built::default(),
        filter: args.filter.clone().unwrap_or_default(),
        units: args.units,
        parts: Vec::new(),
    };
    let outcomes: Vec<_> = steps
        .into_iter()
        .map(|step| run_step(step, &mut gate))
        .collect();
    print!("{}", summary::text(&outcomes, &gate.parts));
    let failed = outcomes.iter().any(|outcome| outcome.tally.failed > 0);
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// A full disk shows as failures of anything: better reported beforehand.
fn warn_of_a_small_disk() {
    let Ok(disk) = rustix::fs::statvfs(root().as_path()) else {
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

fn selected(only: &[String]) -> Result<Vec<&'static Step>> {
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

fn run_step(step: &'static Step, gate: &mut Gate) -> Outcome {
    println!("\n=== {}: {}", step.name, step.what);
    let start = Instant::now();
    let tally = (step.run)(gate).unwrap_or_else(|error| {
        println!("{error:#}");
        Tally::failure()
    });
    let took = start.elapsed();
    println!("=== {}: {tally} ({})", step.name, seconds(took));
    Outcome {
        step: step.name,
        took,
        tally,
    }
}
