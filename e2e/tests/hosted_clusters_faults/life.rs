//! The lifecycle of a hosted cluster: creation, upgrade, deletion. Each stage waits until nothing is
//! written any more; operators that are to be killed meanwhile are killed.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;
use testbed::client::{ApiClient, Patch};
use testbed::conditions::{is_true, untrue};
use testbed::wait;

use crate::hosted_clusters_faults::canonical::Snapshot;
use crate::hosted_clusters_faults::fixture::{
    COMPONENTS, CONTROL_PLANE, CONTROL_PLANES, Fixture, HOSTED_CLUSTERS, MACHINE_DEPLOYMENTS, NAME,
    NAMESPACE, NODE_POOLS, POOL, SECRETS,
};
use crate::hosted_clusters_faults::replicas::Replicas;

/// How long nothing may be written until a stage is over.
const CALM: Duration = Duration::from_secs(3);
/// How long they must have run: with a lease that has to end first, and a pass after it.
const SETTLED: Duration = Duration::from_secs(8);
/// How long a stage may take after the last death.
const PATIENCE: Duration = Duration::from_mins(5);
/// How often it is looked.
const LOOK: Duration = Duration::from_millis(50);

/// What there is at the end of each stage.
#[derive(Debug, Clone)]
pub(crate) struct Snapshots {
    pub(crate) created: Snapshot,
    pub(crate) upgraded: Snapshot,
}

/// What there is of it.
pub(crate) async fn snapshot(fixture: &Fixture<'_>) -> Result<Snapshot> {
    Snapshot::of(&fixture.testbed.admin, &[NAMESPACE, CONTROL_PLANE]).await
}

pub(crate) async fn create(fixture: &Fixture<'_>, replicas: &mut Replicas<'_>) -> Result<Snapshot> {
    fixture.fault_points.lock().enters("create");
    let admin = &fixture.testbed.admin;
    admin.apply(&fixture.desired()?).await?;
    until(fixture, replicas, async || is_made(admin, "4.21.9").await).await?;
    snapshot(fixture).await
}

pub(crate) async fn upgrade(
    fixture: &Fixture<'_>,
    replicas: &mut Replicas<'_>,
) -> Result<Snapshot> {
    fixture.fault_points.lock().enters("upgrade");
    let admin = &fixture.testbed.admin;
    let release = json!({ "spec": { "release": { "image": fixture.releases[1] } } });
    for path in [
        HOSTED_CLUSTERS.named(NAMESPACE, NAME),
        NODE_POOLS.named(NAMESPACE, POOL),
    ] {
        admin.patch(&path, Patch::Merge, &release).await?;
    }
    until(fixture, replicas, async || is_made(admin, "4.22.0").await).await?;
    snapshot(fixture).await
}

pub(crate) async fn delete(fixture: &Fixture<'_>, replicas: &mut Replicas<'_>) -> Result<()> {
    fixture.fault_points.lock().enters("delete");
    let admin = &fixture.testbed.admin;
    admin
        .delete(&HOSTED_CLUSTERS.named(NAMESPACE, NAME))
        .await?;
    until(fixture, replicas, async || {
        untouched_goes(admin).await?;
        is_gone(admin).await
    })
    .await
}

/// A pool that no operator had taken in hand when its cluster went, to which none had put a finalizer yet, is left alone
/// as one that waits for its cluster. Who made it deletes it, too.
async fn untouched_goes(admin: &ApiClient) -> Result<()> {
    let cluster = admin.find(&HOSTED_CLUSTERS.named(NAMESPACE, NAME)).await?;
    let path = NODE_POOLS.named(NAMESPACE, POOL);
    let pool = admin.find(&path).await?;
    let is_untouched = pool.is_some_and(|it| it["metadata"]["finalizers"].is_null());
    if cluster.is_none() && is_untouched {
        admin.delete(&path).await?;
    }
    Ok(())
}

/// Waits for a condition and for calm. An operator that is held is killed, and another one follows.
pub(crate) async fn until(
    fixture: &Fixture<'_>,
    replicas: &mut Replicas<'_>,
    is_so: impl AsyncFn() -> Result<()>,
) -> Result<()> {
    loop {
        until_held(fixture, replicas, &is_so).await?;
        let held = fixture.fault_points.lock().held();
        let Some(death) = held else {
            return Ok(());
        };
        let replaced = replicas.replace(death.who).await;
        replaced.with_context(|| format!("after {death}"))?;
        fixture.fault_points.lock().buries(death);
    }
}

/// The same, until an operator is held.
pub(crate) async fn until_held(
    fixture: &Fixture<'_>,
    replicas: &mut Replicas<'_>,
    is_so: impl AsyncFn() -> Result<()>,
) -> Result<()> {
    let begun = Instant::now();
    loop {
        if fixture.fault_points.lock().held().is_some() {
            return Ok(());
        }
        replicas.follow().await?;
        let Err(error) = is_over(fixture, replicas, &is_so).await else {
            return Ok(());
        };
        if begun.elapsed() > PATIENCE {
            let last = fixture
                .fault_points
                .lock()
                .died()
                .iter()
                .next_back()
                .cloned();
            return Err(error)
                .with_context(|| format!("{} after {last:?}", wait::seconds(begun.elapsed())));
        }
        tokio::time::sleep(LOOK).await;
    }
}

async fn is_over(
    fixture: &Fixture<'_>,
    replicas: &Replicas<'_>,
    is_so: &impl AsyncFn() -> Result<()>,
) -> Result<()> {
    let calm = fixture.fault_points.lock().last_write().elapsed();
    if calm >= CALM {
        is_so().await?;
        return replicas.lead(SETTLED).await;
    }
    wait::not_yet(format!("something was written {calm:?} ago"))
}

/// The control plane and the pool have a release, and all of it.
pub(crate) async fn is_made(admin: &ApiClient, version: &str) -> Result<()> {
    let cluster = admin.get(&HOSTED_CLUSTERS.named(NAMESPACE, NAME)).await?;
    ensure!(
        is_true(&cluster, "Available"),
        "the cluster: {}",
        untrue(&cluster)
    );
    let path = CONTROL_PLANES.named(CONTROL_PLANE, NAME);
    let control_plane = admin.get(&path).await?;
    ensure!(
        is_true(&control_plane, "Available"),
        "the control plane: {}",
        untrue(&control_plane)
    );
    let components = admin.list(&COMPONENTS.within(CONTROL_PLANE)).await?;
    for component in &components {
        let done = is_true(component, "RolloutComplete");
        ensure!(
            done && component["status"]["version"] == version,
            "{} has {}: {}",
            component["metadata"]["name"],
            component["status"]["version"],
            untrue(component)
        );
    }
    ensure!(
        components.len() > 10,
        "only {} components",
        components.len()
    );
    let path = MACHINE_DEPLOYMENTS.named(CONTROL_PLANE, POOL);
    let machines = admin.get(&path).await?;
    let found = &machines["spec"]["template"]["spec"]["version"];
    let found = found.as_str().unwrap_or_default();
    ensure!(
        found.trim_start_matches('v') == version,
        "machines have {found}"
    );
    Ok(())
}

/// Nothing of it is left.
pub(crate) async fn is_gone(admin: &ApiClient) -> Result<()> {
    let path = HOSTED_CLUSTERS.named(NAMESPACE, NAME);
    if let Some(cluster) = admin.find(&path).await? {
        anyhow::bail!("the cluster: {}", untrue(&cluster));
    }
    for path in [
        NODE_POOLS.named(NAMESPACE, POOL),
        format!("/api/v1/namespaces/{CONTROL_PLANE}"),
    ] {
        let found = admin.find(&path).await?;
        ensure!(found.is_none(), "{path} is left");
    }
    // The garbage collector deletes them, later than the operators are done.
    for secret in admin.list(&SECRETS.within(NAMESPACE)).await? {
        let name = &secret["metadata"]["name"];
        let mut owners = secret["metadata"]["ownerReferences"]
            .as_array()
            .into_iter()
            .flatten();
        let is_owned =
            owners.any(|owner| owner["kind"] == "HostedCluster" && owner["name"] == NAME);
        ensure!(!is_owned, "Secret {name} is left");
    }
    Ok(())
}
