//! Benchmark of hypershift-operator with many HostedClusters: the time to create their objects, the memory of each, and
//! the load at rest.
//!
//! The API server and etcd are real; control planes, machines and nodes are simulated. Times come from the API server's
//! audit log: from the creation of a HostedCluster to the last object that the operator wrote for it. Memory and CPU time
//! are those of the operator.

mod requests;
mod stage;
pub mod table;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;

use super::statistics::{figure, percentile};
use super::usage::{Group, Share};
use requests::Requests;
use stage::Stage;
use testbed::progress::Progress;
use testbed::testbed::Testbed;
use testbed::wait;

/// The size of the benchmark.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// HostedClusters that are created at once.
    pub burst: usize,
    /// HostedClusters at rest, including those.
    pub fleet: usize,
    /// Nodes of each.
    pub nodes: usize,
    /// How long the load at rest is measured.
    pub rest: Duration,
}

/// The results.
#[derive(Debug, Clone, Serialize)]
pub struct Figures {
    /// CPUs.
    pub cores: usize,
    /// The share of them that other processes used.
    pub used_by_others: f64,
    /// HostedClusters created at once.
    pub burst: usize,
    /// Seconds until a HostedCluster had all its objects, p50.
    pub p50: f64,
    /// The same, p95.
    pub p95: f64,
    /// Seconds from the first creation to the last object.
    pub total: f64,
    /// CPU seconds of the operator meanwhile.
    pub cpu: f64,
    /// Objects that it created for each.
    pub objects: f64,
    /// Writes meanwhile, except of its Lease and of Events.
    pub burst_writes: usize,
    /// Reads meanwhile, by verb and resource.
    pub burst_reads: BTreeMap<String, usize>,
    /// MiB without HostedClusters.
    pub empty: f64,
    /// MiB with all HostedClusters.
    pub full: f64,
    /// The maximum, in MiB.
    pub peak: f64,
    /// HostedClusters at rest.
    pub fleet: usize,
    /// Seconds at rest.
    pub rest: f64,
    /// Writes in that time, except of its Lease.
    pub writes: usize,
    /// Reads in that time, by verb and resource.
    pub reads: BTreeMap<String, usize>,
    /// CPUs used in that time.
    pub rest_cores: f64,
}

// === impl Plan ===

impl Plan {
    /// The size for comparisons with the targets.
    pub const FULL: Self = Self {
        burst: 100,
        fleet: 1000,
        nodes: 2,
        rest: Duration::from_mins(1),
    };
    /// A small size that runs every part once, to test the benchmark itself.
    pub const QUICK: Self = Self {
        burst: 5,
        fleet: 10,
        nodes: 2,
        rest: Duration::from_secs(10),
    };
}

// === impl Figures ===

impl Figures {
    /// MiB of each HostedCluster.
    pub fn each(&self) -> f64 {
        (self.full - self.empty) / figure(self.fleet as u64)
    }
}

/// Starts the testbed, measures, and stops it.
pub async fn run(plan: Plan, progress: Progress) -> Result<Figures> {
    let mut testbed = Testbed::start("bench-operators", progress).await?;
    let outcome = measure(plan, &mut testbed).await;
    testbed.finish(outcome)
}

async fn measure(plan: Plan, testbed: &mut Testbed) -> Result<Figures> {
    let mut stage = Stage::open(testbed).await?;
    let share = Share::start()?;
    let operator = stage.start_operator().await?;
    stage.wait_until_idle().await?;
    let empty = resident(operator)?;
    let progress = &stage.testbed.progress;
    let step = progress.step(format!("{} clusters at once", plan.burst));
    let (mark, before) = (
        stage.testbed.control_plane.audit.mark()?,
        operator.cpu_seconds()?,
    );
    stage.create(0..plan.burst).await?;
    let (requests, mut seconds) = wait::until("all objects", stage::TIMEOUT, async || {
        stage.wait_until_idle().await?;
        let requests = Requests::read(&stage, mark)?;
        let seconds = requests.seconds(plan.burst)?;
        Ok((requests, seconds))
    })
    .await?;
    let cpu = operator.cpu_seconds()? - before;
    let (p50, p95) = (
        percentile(&mut seconds, 50.0),
        percentile(&mut seconds, 95.0),
    );
    let total = requests.total()?;
    // Printed now, because the rest takes long and may be interrupted.
    step.done_with(&format!("p50 {p50:.1} s, p95 {p95:.1} s, all {total:.1} s"));
    let step = progress.step(format!(
        "{} clusters with {} nodes each",
        plan.fleet, plan.nodes
    ));
    stage.simulate(0..plan.burst, plan.nodes).await?;
    for first in (plan.burst..plan.fleet).step_by(plan.burst) {
        let clusters = first..(first + plan.burst).min(plan.fleet);
        stage.create(clusters.clone()).await?;
        stage.simulate(clusters, plan.nodes).await?;
    }
    stage.wait_until_available(plan.fleet).await?;
    stage.wait_until_idle().await?;
    step.done();
    let full = resident(operator)?;
    let step = progress.step(format!("{} at rest", wait::seconds(plan.rest)));
    let (mark, before) = (
        stage.testbed.control_plane.audit.mark()?,
        operator.cpu_seconds()?,
    );
    tokio::time::sleep(plan.rest).await;
    let rest_cores = (operator.cpu_seconds()? - before) / plan.rest.as_secs_f64();
    let at_rest = Requests::read(&stage, mark)?;
    step.done();
    Ok(Figures {
        cores: std::thread::available_parallelism()
            .context("failed to count CPUs")?
            .get(),
        used_by_others: share.of_others()?,
        burst: plan.burst,
        p50,
        p95,
        total,
        cpu,
        objects: requests.objects(),
        burst_writes: requests.writes,
        burst_reads: requests.reads,
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

/// Resident memory, in MiB.
fn resident(operator: Group) -> Result<f64> {
    Ok(figure(operator.resident_kib()?) / 1024.0)
}
