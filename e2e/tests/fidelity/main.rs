//! Fidelity: what clients see through the proxy is what happened, whatever happens to proxies and connections.
//!
//! - A history of more than 100,000 events, read through proxies that are killed and connections that are cut at random
//!   (seeded), is held against the same history read directly: nothing lost, doubled, reordered or altered (W03, W10).
//! - A thousand creations in flight through a proxy that is killed happen once each, and whole (F01).
//! - While the API server is down requests fail, and none of them arrives later (F03).
//! - A stock manager continues by itself when its proxy is killed (F02).

mod backoff;
mod creations;
mod cutter;
mod faults;
mod fixture;
mod history;
mod manager;
mod outage;
mod random;
mod reader;
mod watches;
mod writer;

use anyhow::Result;
use testbed::progress::Progress;

use crate::fidelity::fixture::Fixture;
use crate::fidelity::random::{Random, SEED_VARIABLE};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_lose_duplicate_and_reorder_nothing() -> Result<()> {
    let seed = random::seed()?;
    let progress = Progress::detect();
    progress.note(&format!("faults by {SEED_VARIABLE}={seed}"));
    let mut fixture = Fixture::start(progress.clone()).await?;
    let outcome = scenario(&mut fixture, &progress, &mut Random::new(seed)).await;
    fixture.finish(outcome)
}

async fn scenario(fixture: &mut Fixture, progress: &Progress, random: &mut Random) -> Result<()> {
    let step =
        progress.step("watches through proxies that are killed and connections that are cut");
    let said = watches::report_what_happened(fixture, random).await?;
    step.done_with(&said);

    let step = progress.step("a thousand creations through a proxy that is killed");
    let said = creations::happen_once(fixture).await?;
    step.done_with(&said);

    let step = progress.step("a manager with a killed proxy");
    manager::goes_on(fixture).await?;
    step.done();

    let step = progress.step("the API server stops and returns");
    let said = outage::adds_no_requests(fixture).await?;
    step.done_with(&said);
    Ok(())
}
