//! Evaluates the owners of all hosted clusters when an object that decides about them has changed, and periodically: a
//! cluster whose owner has changed without an event of its own is reconciled by `control`.
//!
//! It reads from watches and makes no request. While a watch is not in sync, everything is read with requests instead.
//! Nothing is written because of watched data alone: `control` reads a cluster again, and everything is read again before
//! operator-legacy is deleted.

use std::collections::HashSet;
use std::time::Duration;

use ownership::{Scope, needs_legacy_operator};
use support::controller::DEADLINE;
use support::error::chain;
use support::health::Check;
use support::shutdown::Drain;
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::cache::{self, Found};
use crate::cluster_ref::Id;
use crate::context::Context;
use crate::error::{Error, step};
use crate::evaluation::{self, EvaluatedCluster};
use crate::legacy;
use crate::migration::{self, Migrations};

/// The pause after a failure, unless the usual one is shorter.
const RETRY: Duration = Duration::from_secs(5);
/// The debounce of evaluations from watches: objects change together.
const DEBOUNCE: Duration = Duration::from_secs(2);

/// Evaluates until the shutdown begins.
pub(crate) async fn run(
    ctx: &Context,
    migrations: &Migrations,
    requeued: mpsc::UnboundedSender<Id>,
    period: Duration,
    check: &Check,
    mut drain: Drain,
) {
    let mut changes = ctx.cache.changes();
    // The scan at the start has just read everything.
    tokio::select! {
        biased;
        () = drain.begun() => return,
        () = ctx.cache.until_synced() => {}
    }
    loop {
        changes.mark_unchanged();
        let resync = async {
            let resynced = resync(ctx, migrations, &requeued).await;
            resynced.inspect_err(log)
        };
        let (pause, debounce) = tokio::select! {
            biased;
            () = drain.begun() => return,
            resynced = ctx.controllers.pass("resync", DEADLINE, resync) => match resynced {
                Ok(()) => {
                    check.pass();
                    (period, DEBOUNCE.min(period))
                }
                Err(failure) => {
                    ctx.metrics.error(step(&failure), failure.reason());
                    check.fail(failure.to_string());
                    let pause = period.min(RETRY);
                    (pause, pause)
                }
            },
        };
        // Not before the pause is over, and then as soon as something has changed.
        let debounced = async {
            sleep(debounce).await;
            // It fails only when the term is over.
            let _ = changes.changed().await;
        };
        tokio::select! {
            biased;
            () = drain.begun() => return,
            () = debounced => {}
            () = sleep(pause) => {}
        }
    }
}

async fn resync(
    ctx: &Context,
    migrations: &Migrations,
    requeued: &mpsc::UnboundedSender<Id>,
) -> Result<(), Error> {
    let Some(evaluated) = evaluation::from_watches(ctx) else {
        return resync_from_api(ctx, migrations, requeued).await;
    };
    requeue_changed(ctx, migrations, requeued, &evaluated);
    match ctx.scope {
        Scope::Private => {}
        Scope::Legacy | Scope::All => return Ok(()),
    }
    let place = &ctx.legacy_deployment;
    let running = (cache::LEGACY, place.namespace.as_str(), place.name.as_str());
    let running = ctx.cache.index.version(running);
    match (running.map(Found::exists), is_legacy_needed(&evaluated)) {
        (Some(false), needed) => ctx.metrics.legacy(needed, false),
        (Some(true), true) => ctx.metrics.legacy(true, true),
        // It may be time to delete it.
        (Some(true), false) | (None, _) => return resync_from_api(ctx, migrations, requeued).await,
    }
    Ok(())
}

/// Evaluates with requests; requeues changed HostedClusters, and deletes operator-legacy when it is no longer needed.
async fn resync_from_api(
    ctx: &Context,
    migrations: &Migrations,
    requeued: &mpsc::UnboundedSender<Id>,
) -> Result<(), Error> {
    let running = match ctx.scope {
        Scope::Private => legacy::running(ctx).await,
        Scope::Legacy | Scope::All => Ok(None),
    };
    // If both are forbidden, the error of the clusters is reported.
    let evaluated = evaluation::from_api(ctx).await?;
    let running = running?;
    requeue_changed(ctx, migrations, requeued, &evaluated);
    let evaluations = evaluated.iter().map(|one| one.evaluation);
    legacy::reconcile(ctx, running, evaluations, is_rollback_requested(&evaluated)).await
}

fn requeue_changed(
    ctx: &Context,
    migrations: &Migrations,
    requeued: &mpsc::UnboundedSender<Id>,
    evaluated: &[EvaluatedCluster],
) {
    let ids: HashSet<_> = evaluated.iter().map(|one| one.id.clone()).collect();
    ctx.cluster_states.retain(&ids);
    migrations.update_candidates(evaluated);
    for one in evaluated {
        let Some(last) = ctx.cluster_states.evaluation(&one.id) else {
            continue;
        };
        if one.is_condition_due || last != one.evaluation {
            ctx.cache.clusters.forget(&cache::key(&one.id));
            // It fails only when the controller has ended.
            let _ = requeued.send(one.id.clone());
        }
    }
}

fn is_legacy_needed(evaluated: &[EvaluatedCluster]) -> bool {
    needs_legacy_operator(evaluated.iter().map(|one| one.evaluation))
        || is_rollback_requested(evaluated)
}

fn is_rollback_requested(evaluated: &[EvaluatedCluster]) -> bool {
    evaluated
        .iter()
        .any(|one| migration::is_rollback_requested(&one.metadata))
}

fn log(error: &Error) {
    tracing::debug!(error = chain(error), "Failed to evaluate HostedClusters");
}
