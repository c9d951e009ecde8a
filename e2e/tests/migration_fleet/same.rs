//! Whether a cluster is what it was, while its controllers work on it.

use std::time::Duration;

use anyhow::{Context, Result};
use e2e::migration::portrait::Portrait;
use e2e::wait;
use serde_json::Value;

use crate::migration_fleet::ground::Ground;
use crate::migration_fleet::member::Member;

/// When a condition changed: a pause comes and goes with a migration.
const TIME: &str = "lastTransitionTime";

/// How long controllers may take until they have nothing more to tell.
const SETTLED_WITHIN: Duration = Duration::from_mins(1);
/// How long it takes to be believed that they have.
const CALM: Duration = Duration::from_secs(2);

/// What a cluster is, once its controllers have told all that they had to tell.
pub(crate) async fn at_rest(ground: &Ground, member: &Member) -> Result<Portrait> {
    wait::until("a cluster at rest", SETTLED_WITHIN, async || {
        let before = member.portrait(ground).await?;
        tokio::time::sleep(CALM).await;
        let after = member.portrait(ground).await?;
        same(&before, &after)?;
        Ok(after)
    })
    .await
}

/// Waits until a cluster is what it was.
pub(crate) async fn stays(ground: &Ground, member: &Member, before: &Portrait) -> Result<()> {
    wait::until("all to be what it was", SETTLED_WITHIN, async || {
        same(before, &member.portrait(ground).await?)
    })
    .await
}

/// M01: what is moved is equal, and what is not is what it was. Controllers may have made something new beside it, and
/// have other pods.
pub(crate) fn same(before: &Portrait, after: &Portrait) -> Result<()> {
    let before = settled(before, |_| true);
    let after = settled(after, |name| before.others.contains_key(name));
    before.same_as(&after).context("m01")
}

fn settled(portrait: &Portrait, is_known: impl Fn(&str) -> bool) -> Portrait {
    let mut portrait = portrait.clone();
    let is_pod = |name: &str| name.starts_with("Pod ") || name.starts_with("Pod.");
    portrait
        .others
        .retain(|name, _| is_known(name) && !is_pod(name));
    portrait.moved.values_mut().for_each(forget_times);
    portrait
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
