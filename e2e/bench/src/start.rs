//! Cold starts: from the start of the process to the first correct response.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use load::clock;
use load::wire::{Outcome, Spelling, Target};

use super::figures::ColdStart;
use super::peer::Peer;
use super::plan::Plan;
use super::stage::{Stage, first_response};
use super::statistics::{median, micros};
use testbed::progress::Progress;

/// Where our proxy says that it is ready.
const READY_PATH: &str = "/readyz";

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    /// A small GET gets a response.
    FakeResponse,
    /// The program says that it is ready.
    Ready,
}

/// Starts each program several times, in turns. The page cache is warm: what is measured is the program.
pub(super) async fn measure(
    stage: &mut Stage<'_>,
    plan: &Plan,
    progress: &Progress,
) -> Result<BTreeMap<Peer, ColdStart>> {
    let step = progress.step(format!("cold start, {} times each", plan.cold_starts));
    let mut responses: BTreeMap<Peer, Vec<f64>> = BTreeMap::new();
    let mut ready: BTreeMap<Peer, Vec<f64>> = BTreeMap::new();
    for _ in 0..plan.cold_starts {
        for peer in Peer::PROGRAMS {
            responses
                .entry(peer)
                .or_default()
                .extend(once(stage, peer, Sign::FakeResponse).await?);
            ready
                .entry(peer)
                .or_default()
                .extend(once(stage, peer, Sign::Ready).await?);
        }
    }
    step.done();
    let figures = |(peer, responses): (Peer, Vec<f64>)| {
        let ready = ready.get(&peer).filter(|times| !times.is_empty());
        let start = ColdStart {
            first_response_millis: median(&responses),
            ready_millis: ready.map(|times| median(times)),
        };
        (peer, start)
    };
    Ok(responses.into_iter().map(figures).collect())
}

/// One start, in milliseconds; nothing when the program has no such sign.
async fn once(stage: &mut Stage<'_>, peer: Peer, sign: Sign) -> Result<Option<f64>> {
    let prepared = stage.prepare(peer)?;
    let job = match (sign, prepared.admin) {
        (Sign::FakeResponse, _) => first_response(&prepared.target, None),
        (Sign::Ready, None) => return Ok(None),
        (Sign::Ready, Some(address)) => {
            let target = Target {
                address,
                spelling: Spelling::Standard,
                credentials: None,
            };
            first_response(&target, Some(READY_PATH))
        }
    };
    // The client already sends requests when the program starts.
    stage.give(&job).await?;
    let start = clock::now();
    let running = prepared.start(stage)?;
    let outcome = stage.outcome(&running).await?;
    running.stop().await?;
    match outcome {
        Outcome::At(time) => Ok(Some(micros(time.saturating_sub(start)) / 1_000.0)),
        other => bail!("the load client returned {other:?} instead of a point in time"),
    }
}
