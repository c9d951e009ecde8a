//! M02: the operator is killed while it migrates, and another one follows.

use std::fmt;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use e2e::migration::portrait::holds;
use e2e::migration::{Manner, executor};
use e2e::wait;
use migration::groups::Direction;

use crate::migration_fleet::fleet::Case;
use crate::migration_fleet::ground::Ground;

/// How often, unless the variable says another number.
const KILLS: usize = 4;
const KILLS_VARIABLE: &str = "HYPERSHIFT_FLEET_KILLS";
/// It is killed after it has told so many times more where it stands, or fewer.
const MOST: u64 = 14;
/// How long an operator may tell nothing, with a lease to be waited for.
const SILENCE: Duration = Duration::from_secs(40);

/// The phases that it was killed in.
#[derive(Debug, Default)]
pub(crate) struct Kills(Vec<String>);

/// Kills it some times at random moments, and looks at what it left.
pub(crate) async fn scenario(ground: &mut Ground, cases: &[Case]) -> Result<Kills> {
    let mut kills = Kills::default();
    let mut seed = seed();
    for _ in 0..times()? {
        let mark = ground.trail.mark();
        let moves = 1 + usize::try_from(random(&mut seed) % MOST)?;
        let outcome = wait::until("the operator to get on", SILENCE, async || {
            let told = ground.trail.mark() - mark;
            anyhow::ensure!(told >= moves, "it told {told} times of {moves}");
            Ok(())
        });
        if outcome.await.is_err() {
            // Nothing is left to be migrated.
            break;
        }
        ground.kill()?;
        let last = cases.iter().filter_map(|case| {
            let told = ground.trail.since(mark, &case.member.name);
            told.last().map(|it| it.reason.clone())
        });
        kills.0.push(last.collect::<Vec<_>>().join("+"));
        // Nobody writes now.
        for case in cases {
            left_whole(ground, &case.member.namespace()).await?;
        }
        ground.follow().await?;
    }
    Ok(kills)
}

/// What holds at every instant holds now.
async fn left_whole(ground: &Ground, namespace: &str) -> Result<()> {
    let mut executor = executor(&ground.client, namespace, &Manner::default()).await?;
    executor.survey(Direction::Forward).await?;
    holds(&executor).with_context(|| format!("m02: {namespace}, after a kill"))
}

fn times() -> Result<usize> {
    match std::env::var(KILLS_VARIABLE) {
        Ok(times) => times.parse().context(KILLS_VARIABLE),
        Err(_) => Ok(KILLS),
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

impl fmt::Display for Kills {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} kills, in {}", self.0.len(), self.0.join(", "))
    }
}
