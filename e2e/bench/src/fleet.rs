//! hypershift-operator with many hosted clusters: how long it takes to make them, what each of them costs in memory, and
//! what it does at rest.
//!
//! The API server and etcd are real; control planes, machines and nodes are told to be there. Times come from
//! the API server's audit log: of a cluster, from the answer to its creation to the last object that the operator wrote
//! for it. Memory and processor time are the operator's own.

mod deeds;
mod stage;
pub mod table;

use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;

use super::statistics::{figure, percentile};
use super::usage::{Group, Share};
use deeds::Deeds;
use stage::Stage;
use testbed::progress::Progress;
use testbed::testbed::Testbed;
use testbed::wait;

/// How many, and how long.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Clusters that are made at once.
    pub burst: usize,
    /// Clusters at rest, the others among them.
    pub fleet: usize,
    /// Workers of each.
    pub nodes: usize,
    /// How long rest is looked at.
    pub rest: Duration,
}

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Figures {
    /// Processors.
    pub cores: usize,
    /// The part of them that others used.
    pub used_by_others: f64,
    /// Clusters made at once.
    pub burst: usize,
    /// Seconds until one of them had all its objects: the middle one, and all but the slowest of twenty.
    pub p50: f64,
    /// The same, p95.
    pub p95: f64,
    /// Seconds from the first creation to the last object.
    pub total: f64,
    /// Processor seconds of the operator meanwhile.
    pub cpu: f64,
    /// Objects that it wrote for each.
    pub objects: f64,
    /// MiB without a cluster.
    pub empty: f64,
    /// MiB with the fleet, and the most that there ever was.
    pub full: f64,
    /// The most that there ever was, in MiB.
    pub peak: f64,
    /// Clusters in the fleet.
    pub fleet: usize,
    /// Seconds of rest.
    pub rest: f64,
    /// Writes in that time but of its lease.
    pub writes: usize,
    /// Reads in that time.
    pub reads: usize,
    /// Processors used in that time.
    pub rest_cores: f64,
}

// === impl Plan ===

impl Plan {
    /// Enough to judge by.
    pub const FULL: Self = Self {
        burst: 100,
        fleet: 1000,
        nodes: 2,
        rest: Duration::from_mins(1),
    };
    /// Every part once, to see that the bench itself works.
    pub const QUICK: Self = Self {
        burst: 5,
        fleet: 10,
        nodes: 2,
        rest: Duration::from_secs(10),
    };
}

// === impl Figures ===

impl Figures {
    /// MiB of a hosted cluster.
    pub fn each(&self) -> f64 {
        (self.full - self.empty) / figure(self.fleet as u64)
    }
}

/// Starts all that is needed, measures, and ends it.
pub async fn run(plan: Plan, progress: Progress) -> Result<Figures> {
    let mut testbed = Testbed::start("bench-operators", progress).await?;
    let outcome = measure(plan, &mut testbed).await;
    testbed.finish(outcome)
}

async fn measure(plan: Plan, testbed: &mut Testbed) -> Result<Figures> {
    let mut stage = Stage::open(testbed).await?;
    let share = Share::start()?;
    let operator = stage.start_operator().await?;
    stage.is_calm().await?;
    let empty = resident(operator)?;
    let progress = &stage.testbed.progress;
    let step = progress.step(format!("{} clusters at once", plan.burst));
    let (mark, before) = (
        stage.testbed.control_plane.audit.mark()?,
        operator.cpu_seconds()?,
    );
    stage.create(0..plan.burst).await?;
    let (deeds, mut seconds) = wait::until("all objects", stage::PATIENCE, async || {
        stage.is_calm().await?;
        let deeds = Deeds::read(&stage, mark)?;
        let seconds = deeds.seconds(plan.burst)?;
        Ok((deeds, seconds))
    })
    .await?;
    let cpu = operator.cpu_seconds()? - before;
    let (p50, p95) = (
        percentile(&mut seconds, 50.0),
        percentile(&mut seconds, 95.0),
    );
    let total = deeds.total()?;
    // Told now, because the rest takes long and may be cut.
    step.done_with(&format!(
        "one in {p50:.1} s, nineteen of twenty in {p95:.1} s, all in {total:.1} s"
    ));
    let step = progress.step(format!(
        "{} clusters with {} nodes each",
        plan.fleet, plan.nodes
    ));
    stage.come_up(0..plan.burst, plan.nodes).await?;
    for first in (plan.burst..plan.fleet).step_by(plan.burst) {
        let clusters = first..(first + plan.burst).min(plan.fleet);
        stage.create(clusters.clone()).await?;
        stage.come_up(clusters, plan.nodes).await?;
    }
    stage.is_available(plan.fleet).await?;
    stage.is_calm().await?;
    step.done();
    let full = resident(operator)?;
    let step = progress.step(format!("{} at rest", wait::seconds(plan.rest)));
    let (mark, before) = (
        stage.testbed.control_plane.audit.mark()?,
        operator.cpu_seconds()?,
    );
    tokio::time::sleep(plan.rest).await;
    let rest_cores = (operator.cpu_seconds()? - before) / plan.rest.as_secs_f64();
    let at_rest = Deeds::read(&stage, mark)?;
    step.done();
    Ok(Figures {
        cores: std::thread::available_parallelism()
            .context("cannot count the processors")?
            .get(),
        used_by_others: share.of_others()?,
        burst: plan.burst,
        p50,
        p95,
        total,
        cpu,
        objects: deeds.objects(),
        empty,
        full,
        peak: figure(operator.peak_kib()?) / 1024.0,
        fleet: plan.fleet,
        rest: plan.rest.as_secs_f64(),
        writes: at_rest.writes,
        reads: at_rest.reads,
        rest_cores,
    })
}

/// What it has in memory, in MiB.
fn resident(operator: Group) -> Result<f64> {
    Ok(figure(operator.resident_kib()?) / 1024.0)
}
