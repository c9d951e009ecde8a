//! How many requests a peer serves under load, and their cost.

use std::collections::BTreeMap;

use anyhow::Result;
use load::wire::Job;

use super::figures::Throughput;
use super::peer::Peer;
use super::plan::Plan;
use super::stage::{Running, Stage, rate, stop_all};
use super::statistics::{figure, median};
use testbed::progress::Progress;

/// One round with one peer.
struct Round {
    requests_per_second: f64,
    cpu_millis_per_thousand: Option<f64>,
}

/// All peers run; in each round every one is pressed for a while.
pub(super) async fn measure(
    stage: &mut Stage<'_>,
    plan: &Plan,
    progress: &Progress,
) -> Result<BTreeMap<Peer, Throughput>> {
    let step = progress.step(format!(
        "throughput with {} clients",
        plan.throughput_clients
    ));
    let mut peers = stage.start_all(&Peer::ALL).await?;
    let mut rounds: BTreeMap<Peer, Vec<Round>> = BTreeMap::new();
    for _ in 0..plan.throughput_rounds {
        for running in &peers {
            let round = press(stage, plan, running).await?;
            rounds.entry(running.peer).or_default().push(round);
        }
        peers.rotate_left(1);
    }
    stop_all(peers).await?;
    step.done();
    Ok(rounds
        .into_iter()
        .map(|(peer, rounds)| (peer, summary(&rounds)))
        .collect())
}

async fn press(stage: &mut Stage<'_>, plan: &Plan, running: &Running) -> Result<Round> {
    let job = Job::Throughput {
        target: running.target.clone(),
        clients: plan.throughput_clients,
        millis: plan.throughput_millis,
    };
    let before = cpu_seconds(running)?;
    let (requests, seconds) = rate(&stage.perform(running, &job).await?)?;
    let after = cpu_seconds(running)?;
    let cost =
        |(before, after): (f64, f64)| (after - before) * 1_000.0 * 1_000.0 / figure(requests);
    Ok(Round {
        requests_per_second: figure(requests) / seconds,
        cpu_millis_per_thousand: before.zip(after).map(cost),
    })
}

fn cpu_seconds(running: &Running) -> Result<Option<f64>> {
    running
        .group()
        .map(super::usage::Group::cpu_seconds)
        .transpose()
}

fn summary(rounds: &[Round]) -> Throughput {
    let speeds: Vec<f64> = rounds
        .iter()
        .map(|round| round.requests_per_second)
        .collect();
    let costs: Vec<f64> = rounds
        .iter()
        .filter_map(|round| round.cpu_millis_per_thousand)
        .collect();
    Throughput {
        requests_per_second: median(&speeds),
        cpu_millis_per_thousand: (!costs.is_empty()).then(|| median(&costs)),
    }
}
