//! Benchmark of control-plane-operator with one control plane: its requests, memory and processor time at rest, and the
//! processor time of a pass after a change.
//!
//! The API server and both operators are real; pods are simulated. The change is one that the operator takes back: a user
//! writes to a ConfigMap of a component, which has the operator render and compare all components.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::{Value, json};
use testbed::cargo::{Linking, Profile, Program};
use testbed::client::{ApiClient, Patch, Resource};
use testbed::progress::Progress;
use testbed::simulation::{Programs, SimulatedCluster};
use testbed::testbed::Testbed;
use testbed::wait;

use super::statistics::figure;
use super::usage::{Group, Share};

/// The object that is changed, in the control plane of the simulated cluster.
const NAMESPACE: &str = "clusters-example";
const CHANGED: &str = "kube-scheduler";
const CONFIG_MAPS: Resource<'_> = Resource::new("v1", "configmaps");
/// How long a change may take to be taken back.
const TIMEOUT: Duration = Duration::from_mins(1);
/// How long after that the operator is idle again.
const SETTLED: Duration = Duration::from_secs(1);
/// The targets.
const PASS_MS: f64 = 50.0;
const MEMORY_MIB: f64 = 40.0;

/// The size of the benchmark.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// How long the load at rest is measured.
    pub rest: Duration,
    /// How many changes are made.
    pub changes: usize,
}

/// The results.
#[derive(Debug, Clone, Serialize)]
pub struct Figures {
    /// CPUs.
    pub cores: usize,
    /// The share of them that other processes used.
    pub used_by_others: f64,
    /// Components that run.
    pub components: usize,
    /// MiB at rest.
    pub resident: f64,
    /// The maximum, in MiB.
    pub peak: f64,
    /// Seconds at rest.
    pub rest: f64,
    /// Requests in that time by verb and resource, except of watches and of its Lease.
    pub requests: BTreeMap<String, usize>,
    /// CPUs used in that time.
    pub rest_cores: f64,
    /// Milliseconds of processor time after each change, beyond those at rest.
    pub pass: f64,
    /// Seconds until a change was taken back, the longest.
    pub longest: f64,
}

// === impl Plan ===

impl Plan {
    /// The size for comparisons with the targets.
    pub const FULL: Self = Self {
        // Two resyncs of the operator.
        rest: Duration::from_secs(130),
        changes: 30,
    };
    /// A small size that runs every part once, to test the benchmark itself.
    pub const QUICK: Self = Self {
        rest: Duration::from_secs(10),
        changes: 3,
    };
}

/// Starts the testbed, measures, and stops it.
pub async fn run(plan: Plan, progress: Progress) -> Result<Figures> {
    let mut testbed = Testbed::start("bench-control-plane", progress).await?;
    let outcome = measure(plan, &mut testbed).await;
    testbed.finish(outcome)
}

async fn measure(plan: Plan, testbed: &mut Testbed) -> Result<Figures> {
    let share = Share::start()?;
    let programs = Programs {
        hypershift: find(
            "hypershift-operator",
            "HYPERSHIFT_OPERATOR",
            &testbed.progress,
        )
        .await?,
        control_plane: find(
            "control-plane-operator",
            "HYPERSHIFT_CONTROL_PLANE_OPERATOR",
            &testbed.progress,
        )
        .await?,
    };
    let step = testbed.progress.step("a control plane comes up");
    let cluster = SimulatedCluster::start(testbed, &programs).await?;
    let components = cluster.is_rolled_out().await?.len();
    step.done_with(&format!("{components} components"));
    let operator = Group(cluster.pid()?);
    let progress = &cluster.testbed().progress;
    let step = progress.step(format!("{} at rest", wait::seconds(plan.rest)));
    let (mark, before) = (cluster.mark()?, operator.cpu_seconds()?);
    tokio::time::sleep(plan.rest).await;
    let rest_cores = (operator.cpu_seconds()? - before) / plan.rest.as_secs_f64();
    let mut requests = BTreeMap::new();
    for event in cluster.own_requests(mark)? {
        let what = format!("{} {}", event.verb, event.object_ref.resource);
        *requests.entry(what).or_default() += 1;
    }
    let resident = figure(operator.resident_kib()?) / 1024.0;
    step.done();
    let step = progress.step(format!("{} changes", plan.changes));
    let (pass, longest) = changes(plan, &cluster, operator, rest_cores).await?;
    step.done();
    Ok(Figures {
        cores: std::thread::available_parallelism()
            .context("failed to count CPUs")?
            .get(),
        used_by_others: share.of_others()?,
        components,
        resident,
        peak: figure(operator.peak_kib()?) / 1024.0,
        rest: plan.rest.as_secs_f64(),
        requests,
        rest_cores,
        pass,
        longest,
    })
}

async fn find(
    name: &'static str,
    variable: &str,
    progress: &Progress,
) -> Result<std::path::PathBuf> {
    let program = Program {
        package: name,
        name,
        profile: Profile::Release,
        linking: Linking::Dynamic,
    };
    program.find(variable, progress).await
}

/// Makes the changes one after another; returns the milliseconds of each, and the longest time until one was taken back.
async fn changes(
    plan: Plan,
    cluster: &SimulatedCluster<'_>,
    operator: Group,
    rest_cores: f64,
) -> Result<(f64, f64)> {
    let admin = &cluster.testbed().admin;
    let path = CONFIG_MAPS.named(NAMESPACE, CHANGED);
    let desired = admin.get(&path).await?["data"].clone();
    let (begun, before) = (Instant::now(), operator.cpu_seconds()?);
    let mut longest = Duration::ZERO;
    for number in 0..plan.changes {
        let took = change(admin, &path, &desired, number).await?;
        longest = longest.max(took);
    }
    let used = operator.cpu_seconds()? - before - rest_cores * begun.elapsed().as_secs_f64();
    let each = used * 1000.0 / figure(plan.changes as u64);
    Ok((each, longest.as_secs_f64()))
}

/// Changes each value of a ConfigMap, and waits until they are as before.
async fn change(admin: &ApiClient, path: &str, desired: &Value, number: usize) -> Result<Duration> {
    let keys = desired.as_object().context("the ConfigMap is empty")?;
    let changed: serde_json::Map<_, _> = keys
        .keys()
        .map(|key| (key.clone(), json!(format!("changed {number}"))))
        .collect();
    let begun = Instant::now();
    admin
        .patch(path, Patch::Merge, &json!({ "data": changed }))
        .await?;
    wait::until("the change to be taken back", TIMEOUT, async || {
        let found = admin.get(path).await?;
        ensure!(found["data"] == *desired, "{}", found["data"]);
        Ok(())
    })
    .await?;
    let took = begun.elapsed();
    // The write itself is an event, after which nothing is to be done.
    tokio::time::sleep(SETTLED).await;
    Ok(took)
}

/// Renders the results as a Markdown table.
pub fn render(figures: &Figures) -> String {
    let met = |is_met: bool| if is_met { "met" } else { "missed" };
    let requests: usize = figures.requests.values().sum();
    let each = figures.requests.iter();
    let each: Vec<_> = each
        .map(|(what, count)| format!("{what} {count}"))
        .collect();
    let others = figures.used_by_others * 100.0;
    let mut text = format!(
        "{} cores, {others:.0} % of which others used; {} components\n\n| what | found | target |\n|---|---|---|\n",
        figures.cores, figures.components
    );
    let rows = [
        (
            format!(
                "requests in {:.0} s at rest, but watches and its Lease",
                figures.rest
            ),
            format!("{requests} {}", each.join(", "))
                .trim_end()
                .to_owned(),
            format!("0: {}", met(requests == 0)),
        ),
        (
            "processor time of a pass after one change".to_owned(),
            format!("{:.1} ms", figures.pass),
            format!("{PASS_MS} ms: {}", met(figures.pass <= PASS_MS)),
        ),
        (
            "memory at rest; the most at any time".to_owned(),
            format!("{:.1} MiB; {:.1} MiB", figures.resident, figures.peak),
            format!("{MEMORY_MIB} MiB: {}", met(figures.peak <= MEMORY_MIB)),
        ),
        (
            "processors used at rest".to_owned(),
            format!("{:.4}", figures.rest_cores),
            String::new(),
        ),
        (
            "a change is taken back, the longest".to_owned(),
            format!("{:.2} s", figures.longest),
            String::new(),
        ),
    ];
    for (what, found, target) in rows {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| {what} | {found} | {target} |");
    }
    text
}

#[test]
fn missed_targets_are_reported() {
    let figures = Figures {
        cores: 2,
        used_by_others: 0.05,
        components: 46,
        resident: 30.0,
        peak: 41.0,
        rest: 60.0,
        requests: BTreeMap::from([("get secrets".to_owned(), 2)]),
        rest_cores: 0.001,
        pass: 49.0,
        longest: 0.4,
    };
    let text = render(&figures);
    for line in [
        "| requests in 60 s at rest, but watches and its Lease | 2 get secrets 2 | 0: missed |",
        "| processor time of a pass after one change | 49.0 ms | 50 ms: met |",
        "| memory at rest; the most at any time | 30.0 MiB; 41.0 MiB | 40 MiB: missed |",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}
