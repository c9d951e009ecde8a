//! Backups of the management cluster, taken around a migration, and what is made of them.

use anyhow::{Context, Result, ensure};
use api::group::CapiTypes;
use migration::groups::Direction;
use testbed::migration::crash::Killer;
use testbed::migration::object_snapshot::{ObjectSnapshot, holds};
use testbed::migration::{End, Manner, client, migrate, raised};
use testbed::testbed::Testbed;

const NAMESPACE: &str = "backed-up";
/// The instant at which the migration is interrupted: some target objects exist, but not all.
const HALF_WAY: u64 = 40;

/// Every restored cluster completes the migration, or has completed it, and is unchanged otherwise.
/// Check M18.
pub(crate) async fn backups_from_any_phase_can_be_restored(testbed: &mut Testbed) -> Result<()> {
    let step = testbed.progress.step("backups are restored");
    raised::raise(&testbed.admin, NAMESPACE, "one", 1).await?;
    let object_snapshot = ObjectSnapshot::of(&reader(testbed).await?, NAMESPACE).await?;
    let backups = ["before", "during", "after"].map(|when| testbed.path().join(when));
    let [before, during, after] = &backups;

    testbed.control_plane.back_up(before).await?;
    let end = moves(testbed, Some(HALF_WAY)).await?;
    ensure!(end == End::Aborted, "m18: it ended as {end:?}");
    testbed.control_plane.back_up(during).await?;
    moves(testbed, None).await?;
    testbed.control_plane.back_up(after).await?;

    for backup in &backups {
        let what = format!("m18: {}", backup.display());
        testbed.control_plane.restore(backup).await?;
        if backup == after {
            // No migration is in progress: a request would start another one.
        } else {
            let end = moves(testbed, None).await.context(what.clone())?;
            ensure!(matches!(end, End::Moved(_)), "{what}: it ended as {end:?}");
        }
        let now = ObjectSnapshot::of(&reader(testbed).await?, NAMESPACE).await?;
        ensure!(
            now.capi_types == Some(CapiTypes::Private),
            "{what}: on {:?}",
            now.capi_types
        );
        object_snapshot.same_as(&now).context(what)?;
    }
    step.done_with("before, during and after a migration");
    Ok(())
}

/// Moves it forward, or continues with that; up to an instant, if one is named.
async fn moves(testbed: &Testbed, until: Option<u64>) -> Result<End> {
    let mut manner = Manner::default();
    if let Some(instant) = until {
        manner.fault_injector = Some(Killer::at(instant));
        manner.parallel = 1;
    }
    let client = reader(testbed).await?;
    migrate(&client, NAMESPACE, Direction::Forward, &manner, holds).await
}

/// A new one each time: connections to an API server that was replaced are no good.
async fn reader(testbed: &Testbed) -> Result<kube::Client> {
    client(testbed.control_plane.admin_kubeconfig()).await
}
