//! Runs all interruptions in a cloud, and reports what differs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use futures::future::join_all;
use testbed::calls::Call;
use testbed::cargo::Program;
use testbed::progress::Progress;
use tokio::time::timeout;

use super::lane::{Lane, Undisturbed};
use super::platform::Platform;
use super::points::{Point, points};
use crate::hosted_clusters_api::command::BINARY_VARIABLE;

/// The variables: of how many interruptions one is tried, and how long everything may take.
const EVERY: &str = "HYPERSHIFT_FROM_NOTHING_EVERY";
const SECONDS: &str = "HYPERSHIFT_FROM_NOTHING_SECONDS";
const USUAL_SECONDS: usize = 3 * 60 * 60;
/// After this number of differences, no more are looked for.
const ENOUGH: usize = 10;
/// How often the progress is shown: after this number of interruptions.
const SHOWN: usize = 25;

/// What is tried, and what came of it.
struct Soak {
    expected: Undisturbed,
    creations: Vec<Point>,
    destructions: Vec<Point>,
    next: AtomicUsize,
    kills: AtomicUsize,
    differences: Mutex<Vec<String>>,
}

/// Fails if anything differs, or if it takes too long.
pub(super) async fn run(platform: Platform) -> Result<()> {
    let every = variable(EVERY, 1)?;
    let limit = Duration::from_secs(u64::try_from(variable(SECONDS, USUAL_SECONDS)?)?);
    let progress = Progress::detect();
    let program = Program::dev("cli", "hcp");
    let program = program.find(BINARY_VARIABLE, &progress).await?;
    let name = platform.name();
    let step = progress.step(format!("{name}: without interruptions"));
    let first = Lane::start(platform, 1, &program, &progress).await?;
    let expected = first.undisturbed().await?;
    step.done();
    let mut lanes = vec![first];
    for number in 2..=platform.lanes() {
        lanes.push(Lane::start(platform, number, &program, &progress).await?);
    }
    let soak = Soak::new(expected, every);
    progress.note(&format!("{name}: {}", soak.plan()));
    let all = lanes.iter().map(|lane| soak.continue_in(lane, &progress));
    let in_time = timeout(limit, join_all(all)).await;
    let outcome = soak.outcome();
    progress.note(&format!(
        "{name}: {}",
        outcome.as_deref().unwrap_or("failed")
    ));
    outcome?;
    in_time.with_context(|| format!("{name}: not all were tried within {limit:?}"))?;
    Ok(())
}

// === impl Soak ===

impl Soak {
    fn new(expected: Undisturbed, every: usize) -> Self {
        Self {
            creations: points(&expected.creation, every),
            destructions: points(&expected.destruction, every),
            expected,
            next: AtomicUsize::new(0),
            kills: AtomicUsize::new(0),
            differences: Mutex::default(),
        }
    }

    /// The figures of what is tried.
    fn plan(&self) -> String {
        let count = |commands: &[Vec<Call>]| commands.iter().map(Vec::len).sum::<usize>();
        format!(
            "{} calls of a creation, {} of a destruction; {} and {} interruptions",
            count(&self.expected.creation),
            count(&self.expected.destruction),
            self.creations.len(),
            self.destructions.len()
        )
    }

    /// Takes one interruption of each kind after another, until none is left.
    async fn continue_in(&self, lane: &Lane, progress: &Progress) {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let (creation, destruction) =
                (self.creations.get(number), self.destructions.get(number));
            if creation.is_none() && destruction.is_none() || self.has_enough() {
                return;
            }
            self.one(lane, creation, destruction).await;
            if (number + 1).is_multiple_of(SHOWN) {
                let all = self.creations.len().max(self.destructions.len());
                progress.note(&format!("{} of {all} clusters", number + 1));
            }
        }
    }

    /// An interrupted creation, and the interrupted destruction of what it has created.
    async fn one(&self, lane: &Lane, creation: Option<&Point>, destruction: Option<&Point>) {
        let mut is_there = false;
        if let Some(point) = creation {
            let created = lane.is_created(&self.expected, point).await;
            is_there = created.is_ok();
            self.record("creation", point, created);
        }
        let Some(point) = destruction else {
            return;
        };
        let prepared = if is_there {
            Ok(())
        } else {
            lane.is_prepared().await
        };
        let destroyed = match prepared {
            Ok(()) => lane.is_destroyed(&self.expected, point).await,
            Err(error) => Err(error.context("the creation before it")),
        };
        self.record("destruction", point, destroyed);
    }

    fn record(&self, what: &str, point: &Point, result: Result<()>) {
        self.kills.fetch_add(1, Ordering::Relaxed);
        if let Err(error) = result {
            let mut differences = self
                .differences
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            differences.push(format!("{what}, {point}: {error:#}"));
        }
    }

    fn has_enough(&self) -> bool {
        let differences = self.differences.lock();
        differences.unwrap_or_else(PoisonError::into_inner).len() >= ENOUGH
    }

    /// The figures. What differs is an error.
    fn outcome(&self) -> Result<String> {
        let kills = self.kills.load(Ordering::Relaxed);
        let differences = self.differences.lock();
        let differences = differences.unwrap_or_else(PoisonError::into_inner);
        if !differences.is_empty() {
            bail!(
                "{} of {kills} interruptions made a difference:\n{}",
                differences.len(),
                differences.join("\n")
            );
        }
        Ok(format!("{kills} interruptions, no difference"))
    }
}

/// A number of the environment, which is at least one, or the usual one.
fn variable(name: &str, usual: usize) -> Result<usize> {
    let Ok(text) = std::env::var(name) else {
        return Ok(usual);
    };
    let number = text.parse::<usize>();
    let number = number.with_context(|| format!("{name}={text} is not a number"))?;
    ensure!(number > 0, "{name} must be at least 1");
    Ok(number)
}
