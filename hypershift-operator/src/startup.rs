//! What a new leader does first: looks at every hosted cluster, and writes the marks that are due.
//!
//! Nothing is reconciled until all of it has succeeded, so that a cluster from the time before private types is never
//! taken for a new one. A cluster that others write to all the time is left to its own reconciliation, which decides the
//! same way before it does anything else: its author must not be able to hold up all others.

use futures::{StreamExt, TryStreamExt, stream};
use ownership::{Decision, Evaluation, Owner, OwnershipAnnotation, decide, evaluate};
use support::error::chain;
use support::health::Check;
use support::reconcile::{Backoff, Report as _};
use support::shutdown::Drain;

use crate::context::Context;
use crate::control_plane_namespace;
use crate::error::Error;
use crate::hosted_cluster::{self, Id, protocol};
use crate::survey::{self, Judged};

/// Marks under way at once.
const AT_ONCE: usize = 8;
/// How often a mark is decided anew because somebody else was writing.
const ATTEMPTS: usize = 5;

/// The scan has succeeded, or the process is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Scanned,
    Ending,
}

/// Scans until it succeeds.
pub(crate) async fn run(ctx: &Context, check: &Check, drain: &mut Drain) -> Outcome {
    let mut backoff = Backoff::default();
    loop {
        let failed = tokio::select! {
            biased;
            () = drain.begun() => return Outcome::Ending,
            scanned = scan(ctx) => scanned.err(),
        };
        let Some(error) = failed else {
            check.pass();
            return Outcome::Scanned;
        };
        ctx.metrics.error(error.step(), error.reason());
        let problem = chain(&error);
        tracing::debug!(problem, "Scan failed");
        check.fail(problem);
        tokio::time::sleep(backoff.pause(error.retry())).await;
    }
}

/// Decides about every hosted cluster, and writes the marks that are due.
pub(crate) async fn scan(ctx: &Context) -> Result<(), Error> {
    let judged = survey::classify(ctx).await?;
    stream::iter(&judged)
        .map(Ok)
        .try_for_each_concurrent(AT_ONCE, |one| settle(one, ctx))
        .await?;
    let count = |owner| {
        let verdicts = judged.iter().map(|one| one.verdict);
        verdicts.filter(|verdict| verdict.owner == owner).count()
    };
    tracing::info!(
        new = count(Owner::New),
        legacy = count(Owner::Legacy),
        migration = count(Owner::Migration),
        nobody = count(Owner::Undecided),
        "HostedClusters scanned"
    );
    Ok(())
}

/// Writes the mark that is due to a cluster; decides anew when somebody else has written to it.
async fn settle(judged: &Judged, ctx: &Context) -> Result<(), Error> {
    let mut current = judged.clone();
    for _ in 0..ATTEMPTS {
        let written = match due(ctx, current.verdict) {
            Some(mark) => hosted_cluster::mark(&current.id, &current.metadata, mark, ctx).await,
            None => Ok(()),
        };
        match written {
            Ok(()) => {
                let settled = Evaluation {
                    annotation: None,
                    ..current.verdict
                };
                ctx.fleet.decided(current.id, settled);
                return Ok(());
            }
            Err(error) if error.is_conflict() => {}
            Err(error) if error.is_missing() => return Ok(()),
            Err(error) => return Err(error),
        }
        match judge_again(&current, ctx).await? {
            Some(again) => current = again,
            None => return Ok(()),
        }
    }
    defer(&current, ctx);
    Ok(())
}

/// Leaves a cluster to its own reconciliation. Nothing was decided about it.
fn defer(contended: &Judged, ctx: &Context) {
    let Id { namespace, name } = &contended.id;
    let error = Error::Contended {
        object: contended.id.to_string(),
    };
    ctx.metrics.error(error.step(), error.reason());
    tracing::warn!(
        namespace,
        name,
        error = chain(&error),
        "Skipping HostedCluster in the first scan"
    );
}

fn due(ctx: &Context, verdict: Evaluation) -> Option<OwnershipAnnotation> {
    match decide(ctx.scope, &verdict) {
        Decision::Annotate(mark) => Some(mark),
        Decision::Reconcile | Decision::ReportInvalid | Decision::Skip => None,
    }
}

/// The cluster as it is now, unless it is gone.
async fn judge_again(judged: &Judged, ctx: &Context) -> Result<Option<Judged>, Error> {
    let id = &judged.id;
    let api = ctx.hosted_clusters(id);
    let found = api.get_metadata_opt(&id.name).await;
    let found = found.map_err(|source| Error::Read {
        what: format!("HostedCluster {id}"),
        source,
    })?;
    let Some(found) = found else {
        return Ok(None);
    };
    let namespace = control_plane_namespace::find(&ctx.client, &id.namespace, &id.name).await?;
    let evidence = ctx.evidence.of(&namespace).await?;
    let protocol = namespace.protocol(protocol(&found.metadata));
    Ok(Some(Judged {
        id: id.clone(),
        verdict: evaluate(&protocol, evidence),
        is_refused: !namespace.is_usable(),
        metadata: found.metadata,
        untold: true,
    }))
}

#[cfg(test)]
mod tests;
