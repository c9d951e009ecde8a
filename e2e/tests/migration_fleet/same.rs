//! Whether a cluster is what it was, while its controllers work on it.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;
use testbed::migration::object_snapshot::ObjectSnapshot;
use testbed::wait;

use crate::migration_fleet::fixture::Fixture;
use crate::migration_fleet::member::Member;

/// When a condition changed: a migration pauses and resumes.
const TIME: &str = "lastTransitionTime";

/// The end of the names of the Role and the binding that the operator gives itself while it migrates, or tries to.
const PERMISSIONS: &str = "/private-capi-migration";

/// How long controllers may take until they write no more status.
const SETTLED_WITHIN: Duration = Duration::from_mins(1);
/// How long it takes to be believed that they have.
const CALM: Duration = Duration::from_secs(2);

/// What a cluster is, once its controllers have written their status.
pub(crate) async fn at_rest(fixture: &Fixture, member: &Member) -> Result<ObjectSnapshot> {
    wait::until("a cluster at rest", SETTLED_WITHIN, async || {
        let before = member.object_snapshot(fixture).await?;
        tokio::time::sleep(CALM).await;
        let after = member.object_snapshot(fixture).await?;
        same(&before, &after)?;
        Ok(after)
    })
    .await
}

/// Waits until a cluster is what it was.
pub(crate) async fn stays(
    fixture: &Fixture,
    member: &Member,
    before: &ObjectSnapshot,
) -> Result<()> {
    wait::until("all to be what it was", SETTLED_WITHIN, async || {
        same(before, &member.object_snapshot(fixture).await?)
    })
    .await
}

/// M01: what is moved is equal, and what is not is what it was. Controllers may have made something new beside it, and
/// have other pods.
fn same(before: &ObjectSnapshot, after: &ObjectSnapshot) -> Result<()> {
    let before = settled(before, |_| true);
    let after = settled(after, |name| before.others.contains_key(name));
    before.same_as(&after).context("m01")
}

fn settled(object_snapshot: &ObjectSnapshot, is_known: impl Fn(&str) -> bool) -> ObjectSnapshot {
    let mut object_snapshot = object_snapshot.clone();
    let is_pod = |name: &str| name.starts_with("Pod ") || name.starts_with("Pod.");
    object_snapshot
        .others
        .retain(|name, _| is_known(name) && !is_pod(name) && !name.ends_with(PERMISSIONS));
    object_snapshot.moved.values_mut().for_each(forget_times);
    object_snapshot
}

fn forget_times(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(forget_times),
        Value::Object(fields) => {
            fields.remove(TIME);
            fields.values_mut().for_each(forget_times);
        }
        _ => {}
    }
}
