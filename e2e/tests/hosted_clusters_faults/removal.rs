//! O05: a cluster that is deleted while it is being made, at each step of it, leaves nothing; and while something holds it,
//! it says what.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use testbed::client::{ApiClient, Patch};
use testbed::{conditions, wait};

use crate::hosted_clusters_faults::choice::Choice;
use crate::hosted_clusters_faults::fault_points::{Death, Grain};
use crate::hosted_clusters_faults::fixture::{
    CLUSTERS, CONTROL_PLANE, Fixture, HOSTED_CLUSTERS, INFRA, NAME, NAMESPACE,
};
use crate::hosted_clusters_faults::life;
use crate::hosted_clusters_faults::replicas::Replicas;

/// The gate takes so many times more of these than of deaths: there are fewer of them.
const MORE: u64 = 3;
/// How long until it is reported what it waits for.
const REPORTED_WITHIN: Duration = Duration::from_mins(1);
/// As a controller of Cluster API would hold it, until its machines are gone.
const FINALIZER: &str = "cluster.example.com/machines";

pub(crate) async fn scenario(fixture: &Fixture<'_>, replicas: &mut Replicas<'_>) -> Result<()> {
    let choice = Choice::of_environment()?.thinned(MORE);
    let step = fixture
        .testbed
        .progress
        .step("the cluster is deleted while it is being made");
    let before = life::snapshot(fixture).await?;
    let mut died = BTreeSet::new();
    loop {
        fixture
            .fault_points
            .lock()
            .set(choice, Grain::Kind, died.clone());
        let Some(death) = begun(fixture, replicas).await? else {
            break;
        };
        life::delete(fixture, replicas)
            .await
            .with_context(|| format!("deleted at {death}"))?;
        let left = life::snapshot(fixture).await?;
        left.is(&before)
            .with_context(|| format!("deleted at {death}"))?;
        died.insert(death);
    }
    ensure!(!died.is_empty(), "it was never deleted");
    step.done_with(&format!("at {} steps", died.len()));
    held(fixture, replicas).await?;
    let left = life::snapshot(fixture).await?;
    left.is(&before)
}

/// Starts to create the cluster, and kills the operator at the next step. Returns nothing if creation completed.
async fn begun(fixture: &Fixture<'_>, replicas: &mut Replicas<'_>) -> Result<Option<Death>> {
    let fault_points = &fixture.fault_points;
    fault_points.lock().enters("create");
    let admin = &fixture.testbed.admin;
    admin.apply(&fixture.desired()?).await?;
    life::until_held(fixture, replicas, async || {
        life::is_made(admin, "4.21.9").await
    })
    .await?;
    let held = fault_points.lock().held();
    if let Some(death) = &held {
        fault_points.lock().rests();
        replicas.replace(death.who).await?;
    }
    Ok(held)
}

/// The finalizer that holds it is reported, and who is waited for.
async fn held(fixture: &Fixture<'_>, replicas: &mut Replicas<'_>) -> Result<()> {
    let step = fixture
        .testbed
        .progress
        .step("the finalizers of a cluster that is deleted are reported");
    fixture.fault_points.lock().rests();
    let admin = &fixture.testbed.admin;
    let cluster = CLUSTERS.named(CONTROL_PLANE, INFRA);
    finalizers(admin, &cluster, &[FINALIZER]).await?;
    admin
        .delete(&HOSTED_CLUSTERS.named(NAMESPACE, NAME))
        .await?;
    wait::until(
        "the finalizer to be reported",
        REPORTED_WITHIN,
        async || {
            let found = admin.get(&HOSTED_CLUSTERS.named(NAMESPACE, NAME)).await?;
            let condition = conditions::find(&found, "HostedClusterDestroyed")
                .context("there is no condition")?;
            let message = condition["message"].as_str().unwrap_or_default();
            ensure!(
                condition["status"] == "False"
                    && [INFRA, FINALIZER].iter().all(|it| message.contains(it)),
                "{condition}"
            );
            Ok(())
        },
    )
    .await?;
    finalizers(admin, &cluster, &[]).await?;
    life::until(fixture, replicas, async || life::is_gone(admin).await).await?;
    step.done();
    Ok(())
}

async fn finalizers(admin: &ApiClient, path: &str, names: &[&str]) -> Result<()> {
    let desired = json!({ "metadata": { "finalizers": names } });
    admin.patch(path, Patch::Merge, &desired).await?;
    Ok(())
}
