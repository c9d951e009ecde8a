//! O03: a lifecycle in which every operator is killed at the chosen writes, before and after the API server knows of them, is the
//! same as one in which none is.

use std::collections::BTreeSet;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use testbed::wait;

use crate::hosted_clusters_faults::choice::Choice;
use crate::hosted_clusters_faults::components;
use crate::hosted_clusters_faults::fault_points::{Grain, Point, Who};
use crate::hosted_clusters_faults::fixture::{COMPONENTS, CONTROL_PLANE, Fixture};
use crate::hosted_clusters_faults::life::{self, Snapshots};
use crate::hosted_clusters_faults::replicas::Replicas;

pub(crate) async fn scenario(
    fixture: &Fixture<'_>,
    replicas: &mut Replicas<'_>,
    undisturbed: &Snapshots,
) -> Result<()> {
    let choice = Choice::of_environment()?;
    let step = fixture
        .testbed
        .progress
        .step("create, upgrade, delete: the operators are killed at their writes");
    fixture
        .fault_points
        .lock()
        .set(choice, Grain::Object, BTreeSet::new());
    let begun = Instant::now();
    let outcome = live(fixture, replicas, undisturbed).await;
    let fault_points = fixture.fault_points.lock();
    let (died, possible) = (fault_points.died(), fault_points.possible());
    let due = possible.iter().filter(|it| choice.takes(it)).count();
    let figures = format!(
        "{} of {due} deaths that were chosen of {}, in {}",
        died.len(),
        possible.len(),
        wait::seconds(begun.elapsed())
    );
    outcome.with_context(|| format!("after {figures}: {died:#?}"))?;
    for who in [Who::Hypershift, Who::ControlPlane] {
        for point in [Point::Before, Point::After] {
            let found = died.iter().any(|it| it.who == who && it.point == point);
            ensure!(found, "no {who:?} was killed {point:?}: {died:#?}");
        }
    }
    // A write may be refused, and not be made again.
    ensure!(died.len() * 10 > due * 9, "only {figures}");
    step.done_with(&figures);
    Ok(())
}

async fn live(
    fixture: &Fixture<'_>,
    replicas: &mut Replicas<'_>,
    undisturbed: &Snapshots,
) -> Result<()> {
    let created = life::create(fixture, replicas).await.context("create")?;
    created.is(&undisturbed.created).context("created")?;
    covers_all_components(fixture).await?;
    let upgraded = life::upgrade(fixture, replicas).await.context("upgrade")?;
    upgraded.is(&undisturbed.upgraded).context("upgraded")?;
    life::delete(fixture, replicas).await.context("delete")?;
    fixture.fault_points.lock().rests();
    Ok(())
}

/// Fails unless the cluster has all components that it can have, and the workload of each was written where its operator may
/// be killed: with all parts together, there is a death for each component.
async fn covers_all_components(fixture: &Fixture<'_>) -> Result<()> {
    let path = COMPONENTS.within(CONTROL_PLANE);
    let found = fixture.testbed.admin.list(&path).await?;
    let name = |component: &Value| component["metadata"]["name"].as_str().map(str::to_owned);
    let mut found: Vec<_> = found.iter().filter_map(name).collect();
    found.sort_unstable();
    let expected = components::expected();
    ensure!(found == expected, "there are {found:?}, not {expected:?}");
    let fault_points = fixture.fault_points.lock();
    let possible = fault_points.possible();
    let is_covered = |name: &str| possible.iter().any(|death| death.is_workload_of(name));
    let uncovered: Vec<_> = expected.iter().filter(|name| !is_covered(name)).collect();
    ensure!(
        uncovered.is_empty(),
        "no operator could be killed at the workloads of {uncovered:?}"
    );
    let text = format!("{} components could be died of", expected.len());
    fixture.testbed.progress.note(&text);
    Ok(())
}
