//! O03: a life in which everybody dies at the writes that are chosen, before and after the API server knows of them, is the
//! same as one in which nobody does.

use std::collections::BTreeSet;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use e2e::wait;

use crate::hosted_clusters_faults::choice::Choice;
use crate::hosted_clusters_faults::ground::Ground;
use crate::hosted_clusters_faults::life::{self, Worlds};
use crate::hosted_clusters_faults::replicas::Replicas;
use crate::hosted_clusters_faults::trap::{Grain, Point, Who};

pub(crate) async fn scenario(
    ground: &Ground<'_>,
    replicas: &mut Replicas<'_>,
    undisturbed: &Worlds,
) -> Result<()> {
    let choice = Choice::of_environment()?;
    let step = ground
        .testbed
        .progress
        .step("create, upgrade, delete: the operators are killed at their writes");
    ground
        .trap
        .lock()
        .set(choice, Grain::Object, BTreeSet::new());
    let begun = Instant::now();
    let outcome = live(ground, replicas, undisturbed).await;
    let trap = ground.trap.lock();
    let (died, possible) = (trap.died(), trap.possible());
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
            ensure!(found, "nobody died as {who:?} {point:?}: {died:#?}");
        }
    }
    // A write may be refused, and not be made again.
    ensure!(died.len() * 10 > due * 9, "only {figures}");
    step.done_with(&figures);
    Ok(())
}

async fn live(
    ground: &Ground<'_>,
    replicas: &mut Replicas<'_>,
    undisturbed: &Worlds,
) -> Result<()> {
    let created = life::create(ground, replicas).await.context("create")?;
    created.is(&undisturbed.created).context("created")?;
    let upgraded = life::upgrade(ground, replicas).await.context("upgrade")?;
    upgraded.is(&undisturbed.upgraded).context("upgraded")?;
    life::delete(ground, replicas).await.context("delete")?;
    ground.trap.lock().rests();
    Ok(())
}
