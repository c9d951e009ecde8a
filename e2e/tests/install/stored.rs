//! What etcd holds, before and after.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use testbed::testbed::Testbed;

/// What the API server writes by itself, at any time.
const OF_THE_SERVER: [&str; 4] = [
    "/registry/leases/",
    "/registry/masterleases/",
    "/registry/events/",
    "/registry/apiregistration.k8s.io/",
];

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
