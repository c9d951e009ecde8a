//! Migrations of whole namespaces between the two sides of the group table, on a real API server with real garbage
//! collection. Clusters are made without managers, as these leave them.

mod backups;

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use api::group::CapiTypes;
use migration::groups::Direction;
use serde_json::json;
use testbed::capi_storage;
use testbed::client::{Patch, Resource};
use testbed::migration::crash::{self, Soak};
use testbed::migration::object_snapshot::{ObjectSnapshot, holds};
use testbed::migration::{End, Manner, client, executor, migrate, raised, timing};
use testbed::progress::Progress;
use testbed::testbed::Testbed;

const CLUSTERS: Resource<'_> = Resource::new("cluster.x-k8s.io/v1beta2", "clusters");
/// The platform's own cluster, which is never touched.
const PLATFORM: &str = "platform";
/// How many round trips a cluster makes: nothing may accumulate.
const ROUND_TRIPS: usize = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn migrations_preserve_all_objects() -> Result<()> {
    let mut testbed = Testbed::start("migration", Progress::detect()).await?;
    let outcome = scenario(&mut testbed).await;
    testbed.finish(outcome)
}

/// Migrations that are killed, as many as the environment says.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: cargo xtask soak migration"]
async fn migrations_end_on_one_side_after_any_crash() -> Result<()> {
    let soak = Soak {
        runs: variable("HYPERSHIFT_MIGRATION_RUNS", 1000)?,
        seed: variable("HYPERSHIFT_MIGRATION_SEED", 1)?,
        lanes: variable("HYPERSHIFT_MIGRATION_LANES", 3)?,
        machines: usize::try_from(variable("HYPERSHIFT_MIGRATION_MACHINES", 2)?)?,
    };
    let mut testbed = Testbed::start("soak-migration", Progress::detect()).await?;
    let outcome = killed(&mut testbed, &soak).await;
    println!("{}", testbed.finish(outcome)?);
    Ok(())
}

async fn killed(testbed: &mut Testbed, soak: &Soak) -> Result<crash::Tally> {
    for capi_types in [CapiTypes::Standard, CapiTypes::Private] {
        testbed.install_crds(capi_types).await?;
    }
    testbed.start_controller_manager().await?;
    crash::run(testbed, soak).await
}

/// A number of the environment, or the usual one.
fn variable(name: &str, usual: u64) -> Result<u64> {
    match std::env::var(name) {
        Ok(text) => text
            .parse()
            .with_context(|| format!("{name}={text} is not a number")),
        Err(_) => Ok(usual),
    }
}

async fn scenario(testbed: &mut Testbed) -> Result<()> {
    for capi_types in [CapiTypes::Standard, CapiTypes::Private] {
        testbed.install_crds(capi_types).await?;
    }
    testbed.start_controller_manager().await?;
    raised::raise(&testbed.admin, PLATFORM, "its-own", 2).await?;
    let platform = stored(testbed, PLATFORM).await?;
    let mark = testbed.control_plane.audit.mark()?;

    a_plan_lists_every_object_without_writes(testbed).await?;
    a_hundred_machines_migrate_with_few_writes(testbed).await?;
    a_round_trip_preserves_a_paused_cluster(testbed).await?;
    a_crash_at_any_point_ends_on_one_side(testbed).await?;

    ensure!(
        stored(testbed, PLATFORM).await? == platform,
        "m17: objects of the platform's own cluster changed"
    );
    let touched = testbed.control_plane.audit.since(mark)?.into_iter();
    let touched =
        touched.filter(|event| event.is_write() && event.object_ref.namespace == PLATFORM);
    let touched: Vec<_> = touched.map(|event| event.summary()).collect();
    ensure!(touched.is_empty(), "m17: {touched:?}");
    backups::backups_from_any_phase_can_be_restored(testbed).await
}

/// Every object is listed with what becomes of it, and nothing is written.
/// Checks M15 and M17.
async fn a_plan_lists_every_object_without_writes(testbed: &Testbed) -> Result<()> {
    let step = testbed.progress.step("a plan");
    raised::raise(&testbed.admin, "planned", "one", 1).await?;
    let client = client(testbed.control_plane.admin_kubeconfig()).await?;
    let before = stored(testbed, "planned").await?;
    let mut executor = executor(&client, "planned", &Manner::default()).await?;
    let plan = executor.plan(Direction::Forward).await?;
    let planned = plan.inventory.entries.len();
    let there = executor.snapshot().objects().count();
    ensure!(
        planned == there,
        "m15: {planned} of {there} objects are in the plan"
    );
    ensure!(
        stored(testbed, "planned").await? == before,
        "m15: a plan has written something"
    );
    step.done_with(&format!("{planned} objects"));
    Ok(())
}

/// Equal before and after, few writes, and no key of the old types is left.
/// Check M01.
async fn a_hundred_machines_migrate_with_few_writes(testbed: &Testbed) -> Result<()> {
    for machines in [1, 100] {
        // It compares the objects before and after by itself.
        let figures = timing::measure(testbed, machines).await?;
        #[expect(clippy::cast_precision_loss, reason = "counts of writes are small")]
        let ratio = figures.writes as f64 / figures.ideal as f64;
        // A wave that waits for ages costs some more, which shows in small clusters.
        ensure!(machines < 100 || ratio <= 1.1, "m01: {figures:?}");
        let keys = stored(testbed, &format!("timing-{machines}")).await?;
        let count = |capi_types: &str| {
            keys.keys()
                .filter(|key| key.starts_with(capi_types))
                .count()
        };
        ensure!(
            count("Standard") == 0 && count("Private") == figures.objects,
            "m20a: etcd holds {} standard and {} private keys of {} objects",
            count("Standard"),
            count("Private"),
            figures.objects
        );
    }
    Ok(())
}

/// Twenty times there and back: equal each time, and a Cluster that was paused is paused.
/// Checks M03 and M13.
async fn a_round_trip_preserves_a_paused_cluster(testbed: &Testbed) -> Result<()> {
    let step = testbed.progress.step("twenty times there and back");
    let namespace = "to-and-fro";
    raised::raise(&testbed.admin, namespace, "one", 1).await?;
    let paused = json!({ "spec": { "paused": true } });
    let path = CLUSTERS.named(namespace, "one");
    testbed.admin.patch(&path, Patch::Merge, &paused).await?;
    let client = client(testbed.control_plane.admin_kubeconfig()).await?;
    let before = ObjectSnapshot::of(&client, namespace).await?;
    for round in 0..ROUND_TRIPS {
        for direction in [Direction::Forward, Direction::Reverse] {
            let manner = Manner::default();
            let end = migrate(&client, namespace, direction, &manner, holds).await?;
            ensure!(
                matches!(end, End::Moved(_)),
                "m13: round {round} ended as {end:?}"
            );
            let after = ObjectSnapshot::of(&client, namespace).await?;
            ensure!(
                after.capi_types == Some(direction.target()),
                "m13: it is on {:?}",
                after.capi_types
            );
            before
                .same_as(&after)
                .with_context(|| format!("m03, m13: round {round}, {direction:?}"))?;
        }
    }
    step.done();
    Ok(())
}

/// A bounded sample of `cargo xtask soak migration`.
/// Checks M02, M04 and M10.
async fn a_crash_at_any_point_ends_on_one_side(testbed: &mut Testbed) -> Result<()> {
    let step = testbed.progress.step("migrations are killed");
    let soak = Soak {
        runs: 16,
        seed: 6,
        lanes: 2,
        machines: 1,
    };
    let tally = crash::run(testbed, &soak).await?;
    ensure!(tally.kills >= soak.runs / 2, "m02: only {tally}");
    step.done_with(&tally.to_string());
    Ok(())
}

/// What etcd holds of Cluster API in a namespace: bytes by side and key.
async fn stored(testbed: &Testbed, namespace: &str) -> Result<BTreeMap<String, Vec<u8>>> {
    let within = format!("/{namespace}/");
    let mut all = BTreeMap::new();
    for capi_types in [CapiTypes::Standard, CapiTypes::Private] {
        for stored in capi_storage::stored(&testbed.control_plane.etcd, capi_types).await? {
            if stored.key.contains(&within) {
                all.insert(format!("{capi_types:?} {}", stored.key), stored.value);
            }
        }
    }
    Ok(all)
}
