//! A control plane in which nothing changes costs the management cluster nothing.
//!
//! Both operators are real, on a real API server; pods are simulated.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use testbed::audit::Event;
use testbed::cargo::Program;
use testbed::hosted::invariants;
use testbed::operator;
use testbed::progress::Progress;
use testbed::simulation::{Programs, SimulatedCluster};
use testbed::testbed::Testbed;
use testbed::wait;

use crate::hosted_clusters_faults::components;

/// Environment variable that names a built control-plane-operator, so that none is built.
const BINARY_VARIABLE: &str = "HYPERSHIFT_CONTROL_PLANE_OPERATOR";
/// Longer than the resync of the operator, which is a minute.
const REST: Duration = Duration::from_secs(75);

/// Check T24: at rest the control-plane-operator makes no request but for its Lease, and keeps its watches; and what holds of the
/// workloads of every cluster holds of these.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_control_plane_at_rest_makes_no_requests() -> Result<()> {
    let mut testbed = Testbed::start("at-rest", Progress::detect()).await?;
    let outcome = scenario(&mut testbed).await;
    testbed.finish(outcome)
}

async fn scenario(testbed: &mut Testbed) -> Result<()> {
    let control_plane = Program::dev("control-plane-operator", "control-plane-operator");
    let programs = Programs {
        hypershift: operator::build(&testbed.progress).await?,
        control_plane: control_plane
            .find(BINARY_VARIABLE, &testbed.progress)
            .await?,
    };
    let step = testbed.progress.step("a control plane comes up");
    let cluster = SimulatedCluster::start(testbed, &programs).await?;
    let components = has_all(&cluster).await?;
    step.done_with(&format!("{components} components"));
    let testbed = cluster.testbed();
    invariants::of_workloads(&testbed.admin, "clusters", "example").await?;
    let step = testbed.progress.step("it rests");
    let (mark, process) = (cluster.mark()?, cluster.pid()?);
    wait::throughout("no request", REST, async || {
        let requests = cluster.own_requests(mark)?;
        let lines: Vec<_> = requests.iter().map(Event::summary).collect();
        ensure!(lines.is_empty(), "{} requests: {lines:#?}", lines.len());
        Ok(())
    })
    .await?;
    // Otherwise the same would be seen of a program that does not run, or that the log does not know.
    let renewals = cluster.lease_requests(mark)?.len();
    ensure!(renewals > 0, "its Lease was not renewed");
    let now = cluster.pid()?;
    ensure!(now == process, "process {process} was followed by {now}");
    step.done_with(&format!("{renewals} requests for its Lease"));
    has_all(&cluster).await.map(drop)
}

/// The control plane has exactly the expected components, and all of them are rolled out.
async fn has_all(cluster: &SimulatedCluster<'_>) -> Result<usize> {
    let found = cluster.is_rolled_out().await?;
    let names = found.iter().map(|one| one["metadata"]["name"].as_str());
    let mut names = names.collect::<Option<Vec<_>>>().context("no name")?;
    names.sort_unstable();
    let expected = components::expected();
    ensure!(names == expected, "there are {names:?}, not {expected:?}");
    Ok(names.len())
}
