//! Begins migrations, a limited number at a time, and carries them on until they end.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use jiff::Timestamp;
use ownership::Scope;
use support::error::chain;
use support::shutdown::Drain;
use tokio::sync::watch;
use tokio::time::{Duration, Instant, sleep};

use super::candidate::Candidate;
use super::driver::{self, Ended};
use super::queue::{Choice, choose};
use super::settings::{Settings, Switch};
use super::{Census, Metrics};
use crate::context::Context;
use crate::hosted_cluster::Id;
use crate::survey::Judged;

/// How long one that was left is left alone.
const AGAIN: Duration = Duration::from_secs(5);

/// What migrations share with the rest of the operator.
#[derive(Debug)]
pub(crate) struct Migrations {
    pub(crate) settings: Settings,
    pub(crate) metrics: Arc<Metrics>,
    fleet: watch::Sender<Arc<[Candidate]>>,
}

// === impl Migrations ===

impl Migrations {
    pub(crate) fn new(settings: Settings, metrics: &Arc<Metrics>) -> Self {
        Self {
            settings,
            metrics: Arc::clone(metrics),
            fleet: watch::Sender::new(Arc::new([])),
        }
    }

    /// All hosted clusters were looked at.
    pub(crate) fn surveyed(&self, judged: &[Judged]) {
        let members: Arc<[Candidate]> = judged
            .iter()
            .map(|one| {
                let member = Candidate::new(one.id.clone(), &one.metadata, one.verdict);
                if one.is_refused {
                    return member.refused();
                }
                member
            })
            .collect();
        self.metrics.counted(Census::of(members.iter()));
        self.fleet.send_replace(members);
    }
}

impl Drop for Migrations {
    fn drop(&mut self) {
        // Who does not lead knows nothing.
        self.metrics.forget();
    }
}

/// Migrates until the process is to end. What is under way then stops between two steps.
pub(crate) async fn run(ctx: &Context, mut drain: Drain) {
    match ctx.scope {
        Scope::Private => {}
        // operator-legacy is what clusters are taken from, and one operator for all has nothing to migrate.
        Scope::Legacy | Scope::All => return,
    }
    let mut fleet = ctx.migrations.fleet.subscribe();
    let mut resting = Resting::default();
    let mut running = FuturesUnordered::new();
    let mut under_way = HashSet::new();
    loop {
        let members = Arc::clone(&fleet.borrow_and_update());
        for Choice { id, work } in chosen(ctx, &members, &under_way, &resting).await {
            under_way.insert(id.clone());
            let drain = drain.clone();
            running.push(async move {
                let ended = driver::run(ctx, &id, work, &drain).await;
                (id, ended)
            });
        }
        tokio::select! {
            biased;
            () = drain.begun() => break,
            Some((id, ended)) = running.next() => {
                under_way.remove(&id);
                resting.ended(id, &ended);
            }
            changed = fleet.changed() => {
                if changed.is_err() {
                    break;
                }
                resting.surveyed();
            }
        }
    }
    while running.next().await.is_some() {}
}

/// Those that are begun now.
async fn chosen(
    ctx: &Context,
    members: &[Candidate],
    under_way: &HashSet<Id>,
    resting: &Resting,
) -> Vec<Choice> {
    let switch = match Switch::read(ctx).await {
        Ok(switch) => switch,
        Err(error) => {
            tracing::debug!(problem = chain(&error), "Switch of migrations not read");
            sleep(Duration::from_secs(1)).await;
            return Vec::new();
        }
    };
    let free = switch.concurrency.saturating_sub(under_way.len());
    if free == 0 {
        return Vec::new();
    }
    let is_busy = |id: &Id| under_way.contains(id) || resting.contains(id);
    choose(members, switch.gate, Timestamp::now(), free, is_busy)
}

/// Clusters that are not chosen again from what was known of them before their turn ended.
#[derive(Debug, Default)]
struct Resting(HashMap<Id, Until>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    /// The fleet was looked at again, from beginning to end, after the turn.
    Surveys(u8),
    /// A while has passed.
    Time(Instant),
}

// === impl Resting ===

impl Resting {
    fn ended(&mut self, id: Id, ended: &Ended) {
        let until = match ended {
            // The survey that is under way may have seen the cluster before its turn ended.
            Ended::Done | Ended::Failed | Ended::Undue => Until::Surveys(2),
            Ended::Left => Until::Time(Instant::now() + AGAIN),
        };
        self.0.insert(id, until);
    }

    fn surveyed(&mut self) {
        self.0.retain(|_, until| match until {
            Until::Surveys(left) => {
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

    #[tokio::test(start_paused = true)]
    async fn an_old_survey_begins_nothing_again() {
        let id = |name: &str| Id {
            namespace: "clusters".to_owned(),
            name: name.to_owned(),
        };
        let mut resting = Resting::default();
        resting.ended(id("done"), &Ended::Done);
        resting.ended(id("left"), &Ended::Left);
        resting.surveyed();
        assert!(resting.contains(&id("done")) && resting.contains(&id("left")));
        resting.surveyed();
        assert!(!resting.contains(&id("done")));
        assert!(resting.contains(&id("left")));
        tokio::time::advance(AGAIN + Duration::from_millis(1)).await;
        resting.surveyed();
        assert!(!resting.contains(&id("left")));
    }
}
