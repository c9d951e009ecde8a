//! Looks at the evidence about all hosted clusters whenever something of it has changed, and now and then: a cluster
//! whose owner has changed without an event of its own is reconciled by `control`.
//!
//! It looks at what the watches know, and makes no request. While one of them does not know, everything is read instead.
//! Nothing is written of what is only watched: `control` reads a cluster again, and before operator-legacy is deleted,
//! everything is.

use std::collections::HashSet;
use std::time::Duration;

use ownership::{Scope, needs_legacy_operator};
use support::error::chain;
use support::health::Check;
use support::reconcile::Report as _;
use support::shutdown::Drain;
use tokio::sync::mpsc;
use tokio::time::sleep;
use tracing::Instrument as _;

use crate::cache;
use crate::context::Context;
use crate::error::Error;
use crate::hosted_cluster::Id;
use crate::legacy;
use crate::migration;
use crate::survey::{self, Judged};

/// The pause after a failure, unless the usual one is shorter.
const RETRY: Duration = Duration::from_secs(5);
/// Objects change together: the pause between two looks at what is watched.
const DEBOUNCE: Duration = Duration::from_secs(2);

/// Looks until the process is to end.
pub(crate) async fn run(
    ctx: &Context,
    drifted: mpsc::UnboundedSender<Id>,
    period: Duration,
    check: &Check,
    mut drain: Drain,
) {
    let mut changes = ctx.cache.changes();
    loop {
        changes.mark_unchanged();
        let look = look(ctx, &drifted).instrument(support::controller::span("drift"));
        let (pause, debounce) = tokio::select! {
            biased;
            () = drain.begun() => return,
            looked = look => match looked {
                Ok(()) => {
                    check.pass();
                    (period, DEBOUNCE.min(period))
                }
                Err(error) => {
                    failed(ctx, &error, check);
                    let pause = period.min(RETRY);
                    (pause, pause)
                }
            },
        };
        // Not before the pause is over, and then as soon as something has changed.
        let changed = async {
            sleep(debounce).await;
            // It fails only when the term is over.
            let _ = changes.changed().await;
        };
        tokio::select! {
            biased;
            () = drain.begun() => return,
            () = changed => {}
            () = sleep(pause) => {}
        }
    }
}

async fn look(ctx: &Context, drifted: &mpsc::UnboundedSender<Id>) -> Result<(), Error> {
    let Some(judged) = survey::watched(ctx) else {
        return read(ctx, drifted).await;
    };
    surveyed(ctx, drifted, &judged);
    match ctx.scope {
        Scope::Private => {}
        Scope::Legacy | Scope::All => return Ok(()),
    }
    let place = &ctx.legacy_deployment;
    let running = (cache::LEGACY, place.namespace.as_str(), place.name.as_str());
    let running = ctx.cache.index.version(running);
    match (running, is_legacy_needed(&judged)) {
        (Some(None), needed) => ctx.metrics.legacy(needed, false),
        (Some(Some(_)), true) => ctx.metrics.legacy(true, true),
        // It may be time to delete it.
        (Some(Some(_)), false) | (None, _) => return read(ctx, drifted).await,
    }
    Ok(())
}

/// The same of what is read, with all that follows from it.
async fn read(ctx: &Context, drifted: &mpsc::UnboundedSender<Id>) -> Result<(), Error> {
    let running = match ctx.scope {
        Scope::Private => legacy::running(ctx).await,
        Scope::Legacy | Scope::All => Ok(None),
    };
    // Whoever may read neither hears first of the clusters.
    let judged = survey::classify(ctx).await?;
    let running = running?;
    surveyed(ctx, drifted, &judged);
    let verdicts = judged.iter().map(|one| one.verdict);
    legacy::tend(ctx, running, verdicts, is_wanted_back(&judged)).await
}

fn surveyed(ctx: &Context, drifted: &mpsc::UnboundedSender<Id>, judged: &[Judged]) {
    let ids: HashSet<_> = judged.iter().map(|one| one.id.clone()).collect();
    ctx.fleet.keep(&ids);
    ctx.migrations.surveyed(judged);
    for one in judged {
        let Some(last) = ctx.fleet.verdict(&one.id) else {
            continue;
        };
        if one.untold || last != one.verdict {
            ctx.cache.clusters.forget(&cache::key(&one.id));
            // Whoever should hear of it has ended otherwise.
            let _ = drifted.send(one.id.clone());
        }
    }
}

fn is_legacy_needed(judged: &[Judged]) -> bool {
    needs_legacy_operator(judged.iter().map(|one| one.verdict)) || is_wanted_back(judged)
}

fn is_wanted_back(judged: &[Judged]) -> bool {
    judged
        .iter()
        .any(|one| migration::is_wanted_back(&one.metadata))
}

fn failed(ctx: &Context, error: &Error, check: &Check) {
    ctx.metrics.error(error.step(), error.reason());
    let error = chain(error);
    tracing::debug!(error, "Evidence cannot be read");
    check.fail(error);
}
