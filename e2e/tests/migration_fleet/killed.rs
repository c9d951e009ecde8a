//! M02: the operator is killed while it migrates, and another one follows.

use std::fmt;
use std::time::SystemTime;

use anyhow::{Context, Result, ensure};
use migration::groups::Direction;
use testbed::migration::object_snapshot::holds;
use testbed::migration::{Manner, executor};
use testbed::testbed::Testbed;
use testbed::wait;

use crate::migration_fleet::fixture::Fixture;
use crate::migration_fleet::fleet::{Case, EACH};

/// How often, unless the variable says another number.
const KILLS: usize = 4;
const KILLS_VARIABLE: &str = "HYPERSHIFT_FLEET_KILLS";
/// It is killed after at most so many more reports of its progress.
const MOST: u64 = 14;

/// The phases that it was killed in.
#[derive(Debug, Default)]
pub(crate) struct Kills(Vec<String>);

/// Kills it some times at random moments, and looks at what it left.
pub(crate) async fn scenario(
    testbed: &Testbed,
    fixture: &mut Fixture,
    cases: &[Case],
) -> Result<Kills> {
    let mut kills = Kills::default();
    let mut seed = seed();
    for _ in 0..times()? {
        let mark = fixture.trail.mark();
        let moves = 1 + usize::try_from(random(&mut seed) % MOST)?;
        let patience = EACH * u32::try_from(cases.len())?;
        let what = "the operator to get on, or to have nothing left to migrate";
        let is_over = wait::until(what, patience, async || {
            if fixture.trail.mark() - mark >= moves {
                return Ok(false);
            }
            for case in cases {
                case.has_ended(testbed).await?;
            }
            Ok(true)
        });
        if is_over.await? {
            break;
        }
        fixture.kill()?;
        let last = cases.iter().filter_map(|case| {
            let reported = fixture.trail.since(mark, &case.member.name);
            reported.last().map(|it| it.reason.clone())
        });
        kills.0.push(last.collect::<Vec<_>>().join("+"));
        // There are no writes now.
        for case in cases {
            left_whole(fixture, &case.member.namespace()).await?;
        }
        fixture.follow().await?;
    }
    ensure!(!kills.0.is_empty(), "the operator was never killed");
    Ok(kills)
}

/// What holds at every instant holds now.
async fn left_whole(fixture: &Fixture, namespace: &str) -> Result<()> {
    let mut executor = executor(&fixture.client, namespace, &Manner::default()).await?;
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
