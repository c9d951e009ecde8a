//! The peaks of each peer's memory. Every situation has a fresh process, so that no peak hides another.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use load::wire::Job;

use super::figures::Memory;
use super::peer::Peer;
use super::plan::Plan;
use super::stage::{Running, Stage};
use super::statistics::figure;
use testbed::progress::Progress;

/// Measures one peer after the other.
pub(super) async fn measure(
    stage: &mut Stage<'_>,
    plan: &Plan,
    progress: &Progress,
) -> Result<BTreeMap<Peer, Memory>> {
    let mut found = BTreeMap::new();
    for peer in Peer::PROXIES {
        let step = progress.step(format!("memory of {}", peer.name()));
        found.insert(peer, of(stage, plan, peer).await?);
        step.done();
    }
    Ok(found)
}

async fn of(stage: &mut Stage<'_>, plan: &Plan, peer: Peer) -> Result<Memory> {
    let running = stage.start(peer).await?;
    let idle = peak(&running)?;
    let target = running.target.clone();
    let steady = Job::Steady {
        target,
        watches: plan.steady_watches,
        rate: plan.steady_rate,
        millis: plan.steady_millis,
    };
    stage.perform(&running, &steady).await?;
    let steady = peak(&running)?;
    running.stop().await?;

    let idle_watches = with_idle_watches(stage, plan.idle_watches, peer).await?;
    let lists = with_lists(stage, plan, peer).await?;
    Ok(Memory {
        idle,
        steady,
        idle_watches,
        each_watch: figure(idle_watches.saturating_sub(idle)) / figure(plan.idle_watches as u64),
        lists,
    })
}

async fn with_idle_watches(stage: &mut Stage<'_>, watches: usize, peer: Peer) -> Result<u64> {
    let running = stage.start(peer).await?;
    let hold = Job::Hold {
        target: running.target.clone(),
        watches,
    };
    stage.perform(&running, &hold).await?;
    let peak = peak(&running)?;
    stage.perform(&running, &Job::Release).await?;
    running.stop().await?;
    Ok(peak)
}

async fn with_lists(stage: &mut Stage<'_>, plan: &Plan, peer: Peer) -> Result<u64> {
    let running = stage.start(peer).await?;
    let lists = Job::Lists {
        target: running.target.clone(),
        clients: plan.list_clients,
        bytes: plan.list_bytes,
    };
    stage.perform(&running, &lists).await?;
    let peak = peak(&running)?;
    running.stop().await?;
    Ok(peak)
}

fn peak(running: &Running) -> Result<u64> {
    let group = running
        .group()
        .with_context(|| format!("{} is no process of its own", running.peer.name()))?;
    group.peak_kib()
}
