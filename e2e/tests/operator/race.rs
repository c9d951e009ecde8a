//! Two replicas of each operator. Their leaders are killed and frozen at random while hosted clusters change all the
//! time; the API server's audit log then shows who wrote what, in which fencing epoch.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, ensure};
use api::annotations::{PRIVATE_CAPI_TYPES, SCOPE};
use ownership::ObservedGroups;
use serde_json::{Value, json};
use testbed::audit::Event;
use testbed::client::{ApiClient, Patch};
use testbed::operator::{self, Identity, Lease, Operator, Replica, SOON};
use testbed::service_account::ensure_namespace;
use testbed::testbed::Testbed;
use testbed::wait;

use crate::operator::fleet::{self, Member};

/// The duration of the race; an environment variable overrides it.
const TIME: Duration = Duration::from_secs(40);
const TIME_VARIABLE: &str = "HYPERSHIFT_RACE_SECONDS";
/// HostedClusters of each operator.
const EACH: usize = 4;
/// The replicas of each operator.
const REPLICAS: [&str; 2] = ["a", "b"];

/// One operator: its identity, its replicas, its hosted clusters.
struct Side {
    identity: Identity,
    replicas: Vec<Replica>,
    members: Vec<Member>,
}

/// Killed and frozen leaders, and how long it took until the next one led.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) killed: usize,
    frozen: usize,
    pub(crate) changes: usize,
    /// Seconds from the expiry of the Lease until it is taken; negative because of rounding.
    pub(crate) waits: Vec<f64>,
}

/// A write of an operator.
#[derive(Debug)]
pub(crate) struct Write {
    object: String,
    username: String,
    lease: String,
    identity: String,
    epoch: u64,
    received: String,
}

pub(crate) async fn scenario(testbed: &Testbed) -> Result<()> {
    let program = operator::build(&testbed.progress).await?;
    ensure_namespace(&testbed.admin, fleet::NAMESPACE).await?;
    let mut sides = Vec::new();
    for operator in Operator::ALL {
        sides.push(Side::start(testbed, operator, &program).await?);
    }
    let [mut private, mut legacy] =
        <[Side; 2]>::try_from(sides).map_err(|_| anyhow::anyhow!("there are two operators"))?;
    let mark = testbed.control_plane.audit.mark()?;
    let step = testbed.progress.step("leaders are killed and frozen");
    let end = Instant::now() + time()?;
    let admin = &testbed.admin;
    let (one, other) = tokio::try_join!(
        private.race(admin, end, seed()),
        legacy.race(admin, end, seed().rotate_left(17))
    )?;
    step.done_with(&format!("{one}; {other}"));
    let events = testbed.control_plane.audit.since(mark)?;
    let writes = writes(&events)?;
    check_writes(&writes, &[&private, &legacy])?;
    testbed
        .progress
        .note(&format!("{} writes checked", writes.len()));
    Ok(())
}

fn time() -> Result<Duration> {
    match std::env::var(TIME_VARIABLE) {
        Ok(seconds) => Ok(Duration::from_secs(seconds.parse().context(TIME_VARIABLE)?)),
        Err(_) => Ok(TIME),
    }
}

fn seed() -> u64 {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    u64::try_from(now.as_nanos() & u128::from(u64::MAX)).unwrap_or(1) | 1
}

/// The next number of a xorshift generator.
fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

// === impl Tally ===

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut waits = self.waits.clone();
        waits.sort_unstable_by(f64::total_cmp);
        let late = waits.len().saturating_sub(1) * 95 / 100;
        write!(
            f,
            "{} killed, {} frozen, {} changes, taken {:.2} s (p95) and {:.2} s (most) after expiry",
            self.killed,
            self.frozen,
            self.changes,
            waits.get(late).copied().unwrap_or_default(),
            waits.last().copied().unwrap_or_default(),
        )
    }
}

// === impl Side ===

impl Side {
    async fn start(
        testbed: &Testbed,
        operator: Operator,
        program: &std::path::Path,
    ) -> Result<Self> {
        let (letters, observed_groups) = match operator {
            Operator::Private => ("p", ObservedGroups::Private),
            Operator::Legacy => ("l", ObservedGroups::Standard),
        };
        let mut members = Vec::new();
        for number in 0..EACH {
            let member = Member::new(
                &format!("{}-{number}", operator.name()),
                letters,
                observed_groups,
            );
            member.create(&testbed.admin).await?;
            members.push(member);
        }
        let identity = Identity::create(testbed, operator, program).await?;
        let mut replicas = Vec::new();
        for suffix in REPLICAS {
            let mut replica =
                identity.replica(testbed, &format!("{}-{suffix}", operator.name()))?;
            replica.service.start().await?;
            replicas.push(replica);
        }
        Ok(Self {
            identity,
            replicas,
            members,
        })
    }

    /// Changes clusters and disturbs leaders until the end.
    async fn race(&mut self, admin: &ApiClient, end: Instant, seed: u64) -> Result<Tally> {
        let operator = self.identity.operator;
        let changes = AtomicUsize::new(0);
        let ((), mut tally) = tokio::try_join!(
            change(admin, operator, &mut self.members, end, &changes),
            disturb(admin, operator, &mut self.replicas, end, seed, &changes)
        )?;
        tally.changes = changes.into_inner();
        Ok(tally)
    }
}

/// Adds the other operator's annotation to one HostedCluster after the other, and removes it again. Each time the owner
/// has to update its condition, whichever replica leads by then.
async fn change(
    admin: &ApiClient,
    operator: Operator,
    members: &mut [Member],
    end: Instant,
    changes: &AtomicUsize,
) -> Result<()> {
    let (key, value) = match operator {
        Operator::Private => (SCOPE, "legacy"),
        Operator::Legacy => (PRIVATE_CAPI_TYPES, "true"),
    };
    let mut number = 0;
    while Instant::now() < end {
        let count = members.len();
        let member = &mut members[number % count];
        number += 1;
        let new = if member.annotations.remove(key).is_some() {
            Value::Null
        } else {
            member.annotations.insert(key.to_owned(), value.to_owned());
            json!(value)
        };
        let patch = json!({ "metadata": { "annotations": { key: new } } });
        admin.patch(&member.path(), Patch::Merge, &patch).await?;
        let expected = member.expected_condition();
        wait::until(
            &format!("the condition of {}", member.name),
            SOON,
            async || {
                let found = member.condition(admin).await?;
                ensure!(found == expected, "{found:?}, not {expected:?}");
                Ok(())
            },
        )
        .await?;
        changes.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// Kills or freezes the leader while it reconciles, and waits for the next leader.
async fn disturb(
    admin: &ApiClient,
    operator: Operator,
    replicas: &mut [Replica],
    end: Instant,
    mut seed: u64,
    changes: &AtomicUsize,
) -> Result<Tally> {
    let mut tally = Tally::default();
    while Instant::now() < end {
        let before = led(admin, operator, 0).await?;
        let work = usize::try_from(1 + random(&mut seed) % 4)?;
        let enough = changes.load(Ordering::Relaxed) + work;
        wait::until("a leader to work", SOON, async || {
            ensure!(
                changes.load(Ordering::Relaxed) >= enough || Instant::now() >= end,
                "it is idle"
            );
            Ok(())
        })
        .await?;
        let leader = replicas.iter_mut().find(|replica| {
            before
                .holder
                .starts_with(&format!("{}_", replica.service.name()))
        });
        let leader = leader.with_context(|| format!("{before:?} is none of the replicas"))?;
        if random(&mut seed).is_multiple_of(3) {
            leader.freeze();
            tally.frozen += 1;
        } else {
            leader.service.kill();
            tally.killed += 1;
        }
        // Its last renewal may have been later than what was read.
        let last = operator.holder(admin).await?;
        let after = led(admin, operator, before.epoch).await?;
        if let Some(last) = last.filter(|last| last.epoch == before.epoch) {
            let wait = after.acquired.duration_since(last.expires);
            tally.waits.push(wait.as_secs_f64());
        }
        leader.thaw();
        if leader.service.pid().is_none() {
            leader.service.start().await?;
        }
    }
    Ok(tally)
}

/// The lease, once it is held in a later epoch.
async fn led(admin: &ApiClient, operator: Operator, after: u64) -> Result<Lease> {
    let what = format!("a leader of {} after epoch {after}", operator.name());
    wait::until(&what, SOON, async || {
        let lease = operator
            .holder(admin)
            .await?
            .context("the lease is not held")?;
        ensure!(lease.epoch > after, "{lease:?}");
        Ok(lease)
    })
    .await
}

/// The writes to hosted clusters that succeeded, in the order in which they arrived.
pub(crate) fn writes(events: &[Event]) -> Result<Vec<Write>> {
    let mut writes = Vec::new();
    for event in events {
        let operators = event
            .user
            .username
            .starts_with("system:serviceaccount:hypershift:");
        let done = event.response_status.code < 300;
        if !operators || !done || !event.is_write() || event.object_ref.resource != "hostedclusters"
        {
            continue;
        }
        writes.push(Write::parse(event).with_context(|| event.user_agent.clone())?);
    }
    writes.sort_by(|one, other| one.received.cmp(&other.received));
    Ok(writes)
}

// === impl Write ===

impl Write {
    fn parse(event: &Event) -> Option<Self> {
        let (_, inner) = event.user_agent.split_once(" (")?;
        let mut parts = inner.strip_suffix(')')?.split("; ");
        Some(Self {
            object: event.object_ref.name.clone(),
            username: event.user.username.clone(),
            lease: parts.next()?.to_owned(),
            identity: parts.next()?.to_owned(),
            epoch: parts.next()?.strip_prefix("epoch=")?.parse().ok()?,
            received: event.received.clone(),
        })
    }
}

/// Check O02: each cluster is written by its own operator alone; an epoch has one holder; and once a later epoch has written
/// anything, an earlier one never writes again.
fn check_writes(writes: &[Write], sides: &[&Side]) -> Result<()> {
    for side in sides {
        let names: BTreeSet<_> = side
            .members
            .iter()
            .map(|member| member.name.as_str())
            .collect();
        let (username, lease) = (side.identity.username(), side.identity.operator.lease());
        let own: Vec<_> = writes
            .iter()
            .filter(|write| names.contains(write.object.as_str()))
            .collect();
        for write in &own {
            ensure!(
                write.username == username && write.lease == lease,
                "{write:?}"
            );
        }
        let epochs = epochs(&own)?;
        ensure!(
            epochs >= 3,
            "only {epochs} epochs of {lease} have written: the race was none"
        );
    }
    Ok(())
}

/// How many epochs have written. Each has one holder, and none writes after a later one.
pub(crate) fn epochs(writes: &[&Write]) -> Result<usize> {
    let mut holders = BTreeMap::new();
    let mut latest = 0;
    for write in writes {
        let holder = holders.entry(write.epoch).or_insert(&write.identity);
        ensure!(
            *holder == &write.identity,
            "two holders of an epoch: {write:?}, {holder}"
        );
        ensure!(
            write.epoch >= latest,
            "epoch {latest} has written before: {write:?}"
        );
        latest = write.epoch;
    }
    Ok(holders.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(identity: &str, epoch: u64) -> Write {
        Write {
            object: "one".to_owned(),
            username: "operator".to_owned(),
            lease: "lease".to_owned(),
            identity: identity.to_owned(),
            epoch,
            received: String::new(),
        }
    }

    #[test]
    fn two_writers_in_one_epoch_are_found() {
        for (name, writes, expected) in [
            (
                "one after the other",
                vec![write("a", 1), write("b", 2), write("b", 2)],
                Some(2),
            ),
            ("both in one", vec![write("a", 1), write("b", 1)], None),
            (
                "late",
                vec![write("a", 1), write("b", 2), write("a", 1)],
                None,
            ),
        ] {
            let writes: Vec<_> = writes.iter().collect();
            assert_eq!(epochs(&writes).ok(), expected, "{name}");
        }
    }

    #[test]
    fn the_epoch_is_read_from_the_user_agent() {
        let event: Event = serde_json::from_value(json!({
            "verb": "patch",
            "requestURI": "/",
            "user": { "username": "u" },
            "userAgent": "hypershift-operator/0.0.0 (lease; pod-a_1; epoch=12)",
        }))
        .unwrap();
        let write = Write::parse(&event).unwrap();
        assert_eq!((write.identity.as_str(), write.epoch), ("pod-a_1", 12));
    }
}
