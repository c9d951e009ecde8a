//! O05: a cluster that is deleted while it is being made, at each step of it, leaves nothing; and while something holds it,
//! it says what.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::client::{ApiClient, Patch};
use e2e::{conditions, wait};
use serde_json::json;

use crate::hosted_clusters_faults::choice::Choice;
use crate::hosted_clusters_faults::ground::{
    CLUSTERS, CONTROL_PLANE, Ground, HOSTED_CLUSTERS, INFRA, NAME, NAMESPACE,
};
use crate::hosted_clusters_faults::life;
use crate::hosted_clusters_faults::replicas::Replicas;
use crate::hosted_clusters_faults::trap::{Death, Grain};

/// The gate takes so many times more of these than of deaths: there are fewer of them.
const MORE: u64 = 3;
/// How long until somebody says what it waits for.
const TOLD_WITHIN: Duration = Duration::from_mins(1);
/// As a controller of Cluster API would hold it, until its machines are gone.
const FINALIZER: &str = "cluster.example.com/machines";

pub(crate) async fn scenario(ground: &Ground<'_>, replicas: &mut Replicas<'_>) -> Result<()> {
    let choice = Choice::of_environment()?.thinned(MORE);
    let step = ground
        .testbed
        .progress
        .step("the cluster is deleted while it is being made");
    let before = life::world(ground).await?;
    let mut died = BTreeSet::new();
    loop {
        ground.trap.lock().set(choice, Grain::Kind, died.clone());
        let Some(death) = begun(ground, replicas).await? else {
            break;
        };
        life::delete(ground, replicas)
            .await
            .with_context(|| format!("deleted at {death}"))?;
        let left = life::world(ground).await?;
        left.is(&before)
            .with_context(|| format!("deleted at {death}"))?;
        died.insert(death);
    }
    ensure!(!died.is_empty(), "it was never deleted");
    step.done_with(&format!("at {} steps", died.len()));
    held(ground, replicas).await?;
    let left = life::world(ground).await?;
    left.is(&before)
}

/// Begins to make the cluster, and kills whoever comes to the next step. Nothing, if it was made.
async fn begun(ground: &Ground<'_>, replicas: &mut Replicas<'_>) -> Result<Option<Death>> {
    let trap = &ground.trap;
    trap.lock().enters("create");
    let admin = &ground.testbed.admin;
    admin.apply(&ground.wish()?).await?;
    life::until_held(ground, replicas, async || {
        life::is_made(admin, "4.21.9").await
    })
    .await?;
    let held = trap.lock().held();
    if let Some(death) = &held {
        trap.lock().rests();
        replicas.replace(death.who).await?;
    }
    Ok(held)
}

/// What holds it is told, with who is waited for.
async fn held(ground: &Ground<'_>, replicas: &mut Replicas<'_>) -> Result<()> {
    let step = ground
        .testbed
        .progress
        .step("what holds a cluster that is deleted is told");
    ground.trap.lock().rests();
    let admin = &ground.testbed.admin;
    let cluster = CLUSTERS.named(CONTROL_PLANE, INFRA);
    finalizers(admin, &cluster, &[FINALIZER]).await?;
    admin
        .delete(&HOSTED_CLUSTERS.named(NAMESPACE, NAME))
        .await?;
    wait::until("the finalizer to be told", TOLD_WITHIN, async || {
        let found = admin.get(&HOSTED_CLUSTERS.named(NAMESPACE, NAME)).await?;
        let told = conditions::find(&found, "HostedClusterDestroyed").context("nothing is told")?;
        let message = told["message"].as_str().unwrap_or_default();
        ensure!(
            told["status"] == "False" && [INFRA, FINALIZER].iter().all(|it| message.contains(it)),
            "{told}"
        );
        Ok(())
    })
    .await?;
    finalizers(admin, &cluster, &[]).await?;
    life::until(ground, replicas, async || life::is_gone(admin).await).await?;
    step.done();
    Ok(())
}

async fn finalizers(admin: &ApiClient, path: &str, names: &[&str]) -> Result<()> {
    let wanted = json!({ "metadata": { "finalizers": names } });
    admin.patch(path, Patch::Merge, &wanted).await?;
    Ok(())
}
