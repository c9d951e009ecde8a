//! What etcd holds, before and after.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use e2e::etcd::Stored;
use e2e::testbed::Testbed;

use crate::PLATFORM;

/// What the API server writes by itself, at any time.
const OF_THE_SERVER: [&str; 4] = [
    "/registry/leases/",
    "/registry/masterleases/",
    "/registry/events/",
    "/registry/apiregistration.k8s.io/",
];
/// The standard CRDs.
const STANDARD: &str = ".cluster.x-k8s.io";

/// The revision of each key's last change.
pub(crate) type Revisions = BTreeMap<String, u64>;

/// Revisions of everything that clients write.
pub(crate) async fn revisions(testbed: &Testbed) -> Result<Revisions> {
    let stored = testbed.control_plane.etcd.stored("/registry/").await?;
    Ok(stored
        .into_iter()
        .filter(|one| {
            !OF_THE_SERVER
                .iter()
                .any(|prefix| one.key.starts_with(prefix))
        })
        .map(|one| (one.key, one.revision))
        .collect())
}

/// The keys that were made, changed or removed since then.
pub(crate) async fn changed(testbed: &Testbed, before: &Revisions) -> Result<Vec<String>> {
    let after = revisions(testbed).await?;
    let changed = after
        .iter()
        .filter(|(key, revision)| before.get(*key) != Some(*revision))
        .map(|(key, _)| key);
    let removed = before.keys().filter(|key| !after.contains_key(*key));
    Ok(changed.chain(removed).cloned().collect())
}

/// Fails if anything was written since then.
pub(crate) async fn unchanged(testbed: &Testbed, before: &Revisions) -> Result<()> {
    let changed = changed(testbed, before).await?;
    ensure!(changed.is_empty(), "changed: {changed:?}");
    Ok(())
}

/// The platform's CRDs and objects, byte by byte.
pub(crate) async fn platform(testbed: &Testbed) -> Result<Vec<Stored>> {
    let etcd = &testbed.control_plane.etcd;
    let mut stored = etcd
        .stored("/registry/apiextensions.k8s.io/customresourcedefinitions/")
        .await?;
    stored.retain(|crd| crd.key.ends_with(STANDARD));
    ensure!(
        stored.len() > 10,
        "there are {} standard CRDs",
        stored.len()
    );
    let objects = etcd
        .stored(&format!("/registry/cluster.x-k8s.io/clusters/{PLATFORM}/"))
        .await?;
    ensure!(!objects.is_empty(), "the platform has no cluster");
    stored.extend(objects);
    Ok(stored)
}

/// Fails unless the platform's are as they were.
pub(crate) async fn platform_is(testbed: &Testbed, before: &[Stored]) -> Result<()> {
    let after = platform(testbed).await?;
    let changed: Vec<_> = after
        .iter()
        .filter(|one| !before.contains(one))
        .map(|one| &one.key)
        .collect();
    ensure!(
        changed.is_empty() && after.len() == before.len(),
        "the platform's objects were touched: {changed:?}"
    );
    Ok(())
}
