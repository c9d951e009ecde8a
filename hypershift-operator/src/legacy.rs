//! Removes operator-legacy when it is no longer needed.

use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::core::PartialObjectMeta;
use ownership::{Evaluation, Scope, needs_legacy_operator};
use support::apply;
use support::reconcile::is_missing;

use crate::context::Context;
use crate::error::Error;

/// What to do about operator-legacy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// It is needed, and exists.
    Keep,
    /// It exists, and is not needed.
    Retire,
    /// It is needed and does not exist: hosted clusters have no operator until it is installed again.
    Missing,
    /// It does not exist, and is not needed.
    Gone,
}

/// What to do.
fn step(needed: bool, running: bool) -> Step {
    match (needed, running) {
        (true, true) => Step::Keep,
        (true, false) => Step::Missing,
        (false, true) => Step::Retire,
        (false, false) => Step::Gone,
    }
}

/// operator-legacy, if it is installed and stays.
pub(crate) async fn running(ctx: &Context) -> Result<Option<PartialObjectMeta<Deployment>>, Error> {
    let place = &ctx.legacy_deployment;
    let found = api(ctx).get_metadata_opt(&place.name).await;
    let found = found.map_err(|source| Error::Read {
        what: format!("Deployment {place}"),
        source,
    })?;
    Ok(found.filter(|found| found.metadata.deletion_timestamp.is_none()))
}

fn api(ctx: &Context) -> Api<Deployment> {
    Api::namespaced(ctx.client.clone(), &ctx.legacy_deployment.namespace)
}

/// Deletes operator-legacy when no HostedCluster needs it, and no rollback to standard types is requested. Only the operator
/// of private types does.
///
/// `running` was read before the clusters: one that was installed since then, for a rollback that was not requested
/// yet, is another object.
pub(crate) async fn reconcile(
    ctx: &Context,
    running: Option<PartialObjectMeta<Deployment>>,
    evaluations: impl IntoIterator<Item = Evaluation>,
    is_rollback_requested: bool,
) -> Result<(), Error> {
    match ctx.scope {
        Scope::Private => {}
        Scope::Legacy | Scope::All => return Ok(()),
    }
    let needed = needs_legacy_operator(evaluations) || is_rollback_requested;
    ctx.metrics.legacy(needed, running.is_some());
    let Some(running) = running.filter(|_| step(needed, true) == Step::Retire) else {
        return Ok(());
    };
    let place = &ctx.legacy_deployment;
    match apply::delete(&api(ctx), &running.metadata).await {
        Ok(()) => {
            tracing::info!(deployment = %place, "Deleted operator-legacy: no HostedCluster uses standard types");
            ctx.metrics.legacy(needed, false);
            Ok(())
        }
        Err(error) if is_missing(&error) => Ok(()),
        Err(source) => Err(Error::Retire {
            object: place.to_string(),
            source,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operator_legacy_is_deleted_only_when_not_needed() {
        let steps = [(true, true), (true, false), (false, true), (false, false)];
        let steps = steps.map(|(needed, running)| step(needed, running));
        assert_eq!(steps, [Step::Keep, Step::Missing, Step::Retire, Step::Gone]);
    }
}
