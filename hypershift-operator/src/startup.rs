//! The first scan of a new leader: evaluates every HostedCluster, and writes missing ownership annotations.
//!
//! No HostedCluster is reconciled until the scan has succeeded, so that one that was created before private types is
//! never taken for a new one. A HostedCluster with repeated write conflicts is deferred to its own reconcile, which
//! evaluates it first in the same way: one user's writes must not block all other HostedClusters.

use futures::{StreamExt, TryStreamExt, stream};
use ownership::{Decision, Evaluation, Owner, OwnershipAnnotation, decide, evaluate};
use support::controller::DEADLINE;
use support::error::chain;
use support::health::Check;
use support::reconcile::{Backoff, Report as _};
use support::shutdown::Drain;

use crate::cluster_ref::{Id, protocol};
use crate::context::Context;
use crate::control_plane_namespace;
use crate::error::{Error, step};
use crate::evaluation::{self, EvaluatedCluster};
use crate::hosted_cluster;

/// HostedClusters that are annotated at the same time.
const CONCURRENCY: usize = 8;
/// Attempts for a HostedCluster with write conflicts; each evaluates it again.
const ATTEMPTS: usize = 5;

/// The scan has succeeded, or the shutdown has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Scanned,
    Ending,
}

/// Scans until it succeeds.
pub(crate) async fn run(ctx: &Context, check: &Check, drain: &mut Drain) -> Outcome {
    let mut backoff = Backoff::default();
    loop {
        let scan = async { scan(ctx).await.inspect_err(log) };
        let failed = tokio::select! {
            biased;
            () = drain.begun() => return Outcome::Ending,
            scanned = ctx.controllers.pass("scan", DEADLINE, scan) => scanned.err(),
        };
        let Some(failure) = failed else {
            check.pass();
            return Outcome::Scanned;
        };
        ctx.metrics.error(step(&failure), failure.reason());
        check.fail(failure.to_string());
        tokio::time::sleep(backoff.pause(failure.retry())).await;
    }
}

fn log(error: &Error) {
    tracing::debug!(error = chain(error), "Failed to scan HostedClusters");
}

/// Evaluates every HostedCluster, and writes missing ownership annotations.
pub(crate) async fn scan(ctx: &Context) -> Result<(), Error> {
    let evaluated = evaluation::from_api(ctx).await?;
    stream::iter(&evaluated)
        .map(Ok)
        .try_for_each_concurrent(CONCURRENCY, |one| annotate_cluster(one, ctx))
        .await?;
    let count = |owner| {
        let evaluations = evaluated.iter().map(|one| one.evaluation);
        evaluations
            .filter(|evaluation| evaluation.owner == owner)
            .count()
    };
    tracing::info!(
        new = count(Owner::New),
        legacy = count(Owner::Legacy),
        migration = count(Owner::Migration),
        undecided = count(Owner::Undecided),
        "Scanned HostedClusters"
    );
    Ok(())
}

/// Writes the missing ownership annotation of a HostedCluster. After a conflict the HostedCluster is evaluated again.
async fn annotate_cluster(evaluated: &EvaluatedCluster, ctx: &Context) -> Result<(), Error> {
    let mut current = evaluated.clone();
    for _ in 0..ATTEMPTS {
        let written = match due_annotation(ctx, current.evaluation) {
            Some(annotation) => {
                hosted_cluster::annotate(&current.id, &current.metadata, annotation, ctx).await
            }
            None => Ok(()),
        };
        match written {
            Ok(()) => {
                let settled = Evaluation {
                    annotation: None,
                    ..current.evaluation
                };
                ctx.cluster_states.record(current.id, settled);
                return Ok(());
            }
            Err(error) if error.is_conflict() => {}
            Err(error) if error.is_missing() => return Ok(()),
            Err(error) => return Err(error),
        }
        match reevaluate(&current, ctx).await? {
            Some(again) => current = again,
            None => return Ok(()),
        }
    }
    defer(&current, ctx);
    Ok(())
}

/// Defers a HostedCluster to its own reconcile. No evaluation is recorded.
fn defer(contended: &EvaluatedCluster, ctx: &Context) {
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

fn due_annotation(ctx: &Context, evaluation: Evaluation) -> Option<OwnershipAnnotation> {
    match decide(ctx.scope, &evaluation) {
        Decision::Annotate(annotation) => Some(annotation),
        Decision::Reconcile | Decision::ReportInvalid | Decision::Skip => None,
    }
}

/// The HostedCluster as it is now, unless it was deleted.
async fn reevaluate(
    evaluated: &EvaluatedCluster,
    ctx: &Context,
) -> Result<Option<EvaluatedCluster>, Error> {
    let id = &evaluated.id;
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
    let observed_groups = ctx.observed_groups.of(&namespace).await?;
    let protocol = namespace.protocol(protocol(&found.metadata));
    Ok(Some(EvaluatedCluster {
        id: id.clone(),
        evaluation: evaluate(&protocol, observed_groups),
        is_refused: !namespace.is_usable(),
        metadata: found.metadata,
        is_condition_due: true,
    }))
}

#[cfg(test)]
mod tests;
