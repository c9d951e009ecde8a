//! The load client: does one job after the other.

mod caller;
mod crowd;
mod translate;
mod watcher;

use std::io::{BufRead, Write};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::clock;
use crate::http1::Connection;
use crate::wire::{Call, Job, Outcome, Target};
use caller::Caller;
use watcher::Watcher;

/// Calls that warm a connection up are a tenth of those that are timed, and at most so many.
const MOST_WARM_UP: usize = 20;
/// Time between two attempts to get a first response.
const ATTEMPT_INTERVAL: Duration = Duration::from_micros(200);

/// What a load client keeps between jobs.
#[derive(Debug, Default)]
pub struct Worker {
    held: Vec<Connection>,
}

/// Reads jobs from `input`, a line each, and writes their outcomes to `output`, until the input ends.
pub fn run(input: impl BufRead, mut output: impl Write) -> Result<()> {
    let mut worker = Worker::default();
    for line in input.lines() {
        let job = serde_json::from_str(&line.context("cannot read the next job")?)
            .context("cannot understand the job")?;
        let outcome = worker
            .perform(job)
            .unwrap_or_else(|error| Outcome::Failed(format!("{error:#}")));
        serde_json::to_writer(&mut output, &outcome).context("cannot write the outcome")?;
        output
            .write_all(b"\n")
            .and_then(|()| output.flush())
            .context("cannot write the outcome")?;
    }
    Ok(())
}

// === impl Worker ===

impl Worker {
    /// Does one job.
    pub fn perform(&mut self, job: Job) -> Result<Outcome> {
        match job {
            Job::Latency {
                target,
                call,
                count,
            } => latency(&target, call, count),
            Job::Watch {
                target,
                events,
                interval_micros,
            } => Ok(Outcome::Samples(
                Watcher::open(&target, events, interval_micros)?.receive(events)?,
            )),
            Job::Throughput {
                target,
                clients,
                millis,
            } => crowd::throughput(&target, clients, millis),
            Job::Steady {
                target,
                watches,
                rate,
                millis,
            } => crowd::steady(&target, watches, rate, millis),
            Job::Lists {
                target,
                clients,
                bytes,
            } => crowd::lists(&target, clients, bytes),
            Job::Hold { target, watches } => self.hold(&target, watches),
            Job::Release => {
                self.held.clear();
                Ok(Outcome::Done)
            }
            Job::Translate { bytes, millis } => {
                translate::measure(bytes, millis).map(Outcome::Translation)
            }
            Job::FirstResponse {
                target,
                path,
                within_millis,
            } => first_response(
                &target,
                path.as_deref(),
                Duration::from_millis(within_millis),
            ),
        }
    }

    fn hold(&mut self, target: &Target, watches: usize) -> Result<Outcome> {
        for number in 1..=watches {
            let idle =
                Watcher::idle(target).with_context(|| format!("watch {number} of {watches}"))?;
            self.held.push(idle);
        }
        Ok(Outcome::Done)
    }
}

fn latency(target: &Target, call: Call, count: usize) -> Result<Outcome> {
    let mut caller = Caller::open(target, call)?;
    for _ in 0..(count / 10).clamp(1, MOST_WARM_UP) {
        caller.call()?;
    }
    let mut samples = Vec::with_capacity(count);
    for _ in 0..count {
        let start = Instant::now();
        caller.call()?;
        samples.push(nanos(start.elapsed()));
    }
    Ok(Outcome::Samples(samples))
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn first_response(target: &Target, path: Option<&str>, within: Duration) -> Result<Outcome> {
    let start = Instant::now();
    loop {
        match attempt(target, path) {
            Ok(()) => return Ok(Outcome::At(clock::now())),
            Err(error) if start.elapsed() >= within => {
                return Err(error).with_context(|| {
                    format!("no correct response within {} ms", within.as_millis())
                });
            }
            Err(_) => sleep(ATTEMPT_INTERVAL),
        }
    }
}

fn attempt(target: &Target, path: Option<&str>) -> Result<()> {
    match path {
        Some(path) => caller::succeeds(target, path),
        None => Caller::open(target, Call::Get)?.call(),
    }
}
