//! Starts migrations, a limited number at a time, and runs them until they end.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use jiff::Timestamp;
use ownership::Scope;
use support::controller::DEADLINE;
use support::error::chain;
use support::shutdown::Drain;
use tokio::sync::watch;
use tokio::time::{Duration, Instant, sleep};

use super::candidate::Candidate;
use super::driver::{self, Ended};
use super::leftovers::{self, Activity};
use super::queue::{Choice, choose};
use super::settings::{Known, Switch};
use super::{Metrics, StateCounts};
use crate::cluster_ref::Id;
use crate::config::MigrationSettings;
use crate::context::Context;
use crate::error::Error;
use crate::evaluation::EvaluatedCluster;

/// The delay before an interrupted migration continues.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// The pause after an evaluation that failed.
const REQUEUE_AFTER_ERROR: Duration = Duration::from_secs(1);
/// So many migrations that wait for a user take no place of others. The limit bounds those that go on at the same time
/// when their users have acted.
const MAX_BLOCKED: usize = 8;

/// The state of migrations that outlives a single one.
#[derive(Debug)]
pub(crate) struct Migrations {
    pub(crate) settings: MigrationSettings,
    pub(crate) metrics: Arc<Metrics>,
    candidates: watch::Sender<Arc<[Candidate]>>,
    blocked: Mutex<HashSet<Id>>,
}

// === impl Migrations ===

impl Migrations {
    pub(crate) fn new(settings: MigrationSettings, metrics: &Arc<Metrics>) -> Self {
        Self {
            settings,
            metrics: Arc::clone(metrics),
            candidates: watch::Sender::new(Arc::new([])),
            blocked: Mutex::default(),
        }
    }

    /// Whether the migration of a cluster waits for its user.
    pub(super) fn set_blocked(&self, id: &Id, is_blocked: bool) {
        let mut blocked = self.blocked();
        if is_blocked {
            blocked.insert(id.clone());
        } else {
            blocked.remove(id);
        }
    }

    fn blocked(&self) -> MutexGuard<'_, HashSet<Id>> {
        self.blocked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Updates the candidates after an evaluation of all HostedClusters.
    pub(crate) fn update_candidates(&self, evaluated: &[EvaluatedCluster]) {
        let members: Arc<[Candidate]> = evaluated
            .iter()
            .map(|one| {
                let member = Candidate::new(one.id.clone(), &one.metadata, one.evaluation);
                if one.is_refused {
                    return member.refused();
                }
                member
            })
            .collect();
        self.metrics.counted(StateCounts::of(members.iter()));
        self.candidates.send_replace(members);
    }
}

impl Drop for Migrations {
    fn drop(&mut self) {
        // Who does not lead knows nothing.
        self.metrics.forget();
    }
}

/// Migrates until shutdown. Migrations in progress then stop between two steps.
pub(crate) async fn run(ctx: &Context, migrations: &Migrations, mut drain: Drain) {
    match ctx.scope {
        Scope::Private => {}
        // operator-legacy is the source of migrations, and a single operator for all clusters has nothing to migrate.
        Scope::Legacy | Scope::All => return,
    }
    let mut candidates = migrations.candidates.subscribe();
    let mut resting = Resting::default();
    let mut known = None;
    let mut running = FuturesUnordered::new();
    let mut under_way = HashSet::new();
    // A former leader may have left some.
    let mut may_have_leftovers = true;
    loop {
        let members = Arc::clone(&candidates.borrow_and_update());
        if may_have_leftovers && !members.is_empty() {
            let revoked = leftovers(ctx, &members, &under_way, &resting);
            let revoked = ctx.controllers.pass("migration", DEADLINE, revoked).await;
            may_have_leftovers = revoked.unwrap_or(true);
        }
        let chosen = async {
            let chosen = chosen(ctx, migrations, &members, &under_way, &resting, &mut known).await;
            chosen.inspect_err(log)
        };
        let chosen = ctx.controllers.pass("migration", DEADLINE, chosen).await;
        if chosen.is_err() {
            sleep(REQUEUE_AFTER_ERROR).await;
        }
        for Choice { id, work } in chosen.unwrap_or_default() {
            under_way.insert(id.clone());
            let drain = drain.clone();
            let run_once = async move {
                let ended = driver::run(ctx, migrations, &id, work, &drain).await;
                (id, ended)
            };
            running.push(run_once);
        }
        tokio::select! {
            biased;
            () = drain.begun() => break,
            Some((id, ended)) = running.next() => {
                under_way.remove(&id);
                may_have_leftovers |= matches!(ended, Ended::Interrupted);
                resting.ended(id, &ended);
            }
            changed = candidates.changed() => {
                if changed.is_err() {
                    break;
                }
                resting.evaluated_again();
            }
        }
    }
    while running.next().await.is_some() {}
}

/// Revokes what migrations have left behind; whether this is to be done again.
async fn leftovers(
    ctx: &Context,
    members: &[Candidate],
    under_way: &HashSet<Id>,
    resting: &Resting,
) -> Result<bool, Error> {
    let activity = |id: &Id| {
        if under_way.contains(id) {
            Activity::Migrating
        } else if resting.contains(id) {
            Activity::Resting
        } else {
            Activity::Nothing
        }
    };
    let revoked = leftovers::revoke(ctx, members, activity).await;
    revoked.inspect_err(|error| {
        tracing::warn!(
            error = chain(error),
            "Failed to revoke permissions that a migration left behind"
        );
    })
}

fn log(error: &Error) {
    tracing::debug!(
        error = chain(error),
        "Failed to read the migration ConfigMap"
    );
}

/// Selects clusters to migrate now.
async fn chosen(
    ctx: &Context,
    migrations: &Migrations,
    members: &[Candidate],
    under_way: &HashSet<Id>,
    resting: &Resting,
    known: &mut Option<Known>,
) -> Result<Vec<Choice>, Error> {
    let switch = Switch::read(ctx, migrations.settings.concurrency, known).await?;
    let free = free(
        switch.concurrency,
        under_way.len(),
        migrations.blocked().len(),
    );
    if free == 0 {
        return Ok(Vec::new());
    }
    let is_busy = |id: &Id| under_way.contains(id) || resting.contains(id);
    let now = Timestamp::now();
    Ok(choose(members, switch.gate, now, free, is_busy))
}

/// How many migrations may start.
fn free(concurrency: usize, under_way: usize, blocked: usize) -> usize {
    let active = under_way.saturating_sub(blocked.min(MAX_BLOCKED));
    concurrency.saturating_sub(active)
}

/// Clusters that are not selected again based on data from before their last migration ended.
#[derive(Debug, Default)]
struct Resting(HashMap<Id, Until>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    /// This many more complete evaluations.
    Evaluations(u8),
    /// This time.
    Time(Instant),
}

// === impl Resting ===

impl Resting {
    fn ended(&mut self, id: Id, ended: &Ended) {
        let until = match ended {
            // An evaluation in progress may have read the cluster before its migration ended.
            Ended::Done | Ended::Failed | Ended::NotNeeded => Until::Evaluations(2),
            Ended::Interrupted => Until::Time(Instant::now() + RETRY_INTERVAL),
        };
        self.0.insert(id, until);
    }

    fn evaluated_again(&mut self) {
        self.0.retain(|_, until| match until {
            Until::Evaluations(left) => {
                *left = left.saturating_sub(1);
                *left > 0
            }
            Until::Time(time) => *time > Instant::now(),
        });
    }

    fn contains(&self, id: &Id) -> bool {
        self.0.contains_key(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check T02.
    #[test]
    fn migrations_that_wait_for_users_delay_no_other() {
        // The limit, how many are under way, and how many of these are blocked.
        for (limit, under_way, blocked, expected) in [
            (1, 0, 0, 1),
            (1, 1, 0, 0),
            (1, 1, 1, 1),
            (1, 2, 1, 0),
            (2, 3, 1, 0),
            (2, 3, 2, 1),
            (1, MAX_BLOCKED + 1, MAX_BLOCKED, 0),
            (1, MAX_BLOCKED + 1, MAX_BLOCKED + 1, 0),
            (0, 1, 1, 0),
        ] {
            let case = format!("{blocked} of {under_way} blocked, at most {limit}");
            assert_eq!(free(limit, under_way, blocked), expected, "{case}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_outdated_evaluation_starts_no_migration() {
        let id = |name: &str| Id {
            namespace: "clusters".to_owned(),
            name: name.to_owned(),
        };
        let mut resting = Resting::default();
        resting.ended(id("done"), &Ended::Done);
        resting.ended(id("left"), &Ended::Interrupted);
        resting.evaluated_again();
        assert!(resting.contains(&id("done")) && resting.contains(&id("left")));
        resting.evaluated_again();
        assert!(!resting.contains(&id("done")));
        assert!(resting.contains(&id("left")));
        tokio::time::advance(RETRY_INTERVAL + Duration::from_millis(1)).await;
        resting.evaluated_again();
        assert!(!resting.contains(&id("left")));
    }
}
