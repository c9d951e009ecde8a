//! What each peer adds to a call, and to the delivery of a watch event.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use load::wire::Job;

use super::figures::{Delays, Percentiles};
use super::peer::Peer;
use super::plan::Plan;
use super::stage::{Running, Stage, samples, stop_all};
use super::statistics::{PERCENTILES, median, percentile};
use testbed::progress::Progress;

/// One kind of work, as often as a round does it.
struct Work {
    what: &'static str,
    job: Box<dyn Fn(&Running) -> Job>,
}

/// Percentiles of a peer, a round each.
type Rounds = BTreeMap<Peer, Vec<[f64; PERCENTILES.len()]>>;

/// All peers run; in each round every peer does every kind of work, and a different one begins.
pub(super) async fn measure(
    stage: &mut Stage<'_>,
    plan: &Plan,
    progress: &Progress,
) -> Result<(Vec<Delays>, Delays)> {
    let step = progress.step(format!(
        "latency of calls and watch events, {} rounds",
        plan.rounds
    ));
    let mut peers = stage.start_all(&Peer::ALL).await?;
    let works = works(plan);
    let mut found: Vec<Rounds> = works.iter().map(|_| Rounds::new()).collect();
    for _ in 0..plan.rounds {
        for (work, rounds) in works.iter().zip(&mut found) {
            for running in &peers {
                let outcome = stage.perform(running, &(work.job)(running)).await?;
                let mut taken = samples(outcome)?;
                let row = PERCENTILES.map(|percent| percentile(&mut taken, percent));
                rounds.entry(running.peer).or_default().push(row);
            }
        }
        peers.rotate_left(1);
    }
    stop_all(peers).await?;
    let mut delays: Vec<Delays> = works
        .iter()
        .zip(&found)
        .map(|(work, rounds)| summary(work.what, rounds))
        .collect();
    let watch = delays
        .pop()
        .context("invariant: the watch is the last kind of work")?;
    step.done();
    Ok((delays, watch))
}

/// The calls, and the watch as the last.
fn works(plan: &Plan) -> Vec<Work> {
    let calls = plan.calls.iter().map(|calls| {
        let (call, count) = (calls.call, calls.count);
        let job = move |running: &Running| Job::Latency {
            target: running.target.clone(),
            call,
            count,
        };
        Work {
            what: calls.name,
            job: Box::new(job),
        }
    });
    let (events, interval_micros) = (plan.watch_events, plan.watch_interval_micros);
    let watch = move |running: &Running| Job::Watch {
        target: running.target.clone(),
        events,
        interval_micros,
    };
    calls
        .chain([Work {
            what: "watch event",
            job: Box::new(watch),
        }])
        .collect()
}

/// Medians over the rounds. Differences are taken within a round, so that what is slow in one round is slow for both.
fn summary(what: &'static str, rounds: &Rounds) -> Delays {
    let none = Vec::new();
    let direct = rounds.get(&Peer::Direct).unwrap_or(&none);
    let zero = [0.0; PERCENTILES.len()];
    let added = rounds
        .iter()
        .filter(|(peer, _)| **peer != Peer::Direct)
        .map(|(&peer, rows)| (peer, middle(rows.iter().zip(direct))))
        .collect();
    Delays {
        what,
        direct: middle(direct.iter().map(|row| (row, &zero))),
        added,
    }
}

/// The median of the difference, for each percentile.
fn middle<'r>(pairs: impl Iterator<Item = (&'r [f64; 4], &'r [f64; 4])>) -> Percentiles {
    let pairs: Vec<_> = pairs.collect();
    let [p50, p90, p95, p99] = std::array::from_fn(|column| {
        let differences: Vec<f64> = pairs
            .iter()
            .map(|(row, base)| row[column] - base[column])
            .collect();
        median(&differences)
    });
    Percentiles { p50, p90, p95, p99 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_of_a_whole_round_add_nothing() {
        let rounds = Rounds::from([
            (Peer::Direct, vec![[10.0; 4], [50.0; 4], [11.0; 4]]),
            (Peer::Relay, vec![[13.0; 4], [53.0; 4], [15.0; 4]]),
        ]);
        let delays = summary("GET", &rounds);
        assert_eq!(delays.direct.p50.to_bits(), 11.0_f64.to_bits());
        assert_eq!(delays.added[&Peer::Relay].p99.to_bits(), 3.0_f64.to_bits());
        assert!(!delays.added.contains_key(&Peer::Direct));
    }
}
