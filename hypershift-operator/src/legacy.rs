//! Removes operator-legacy when it is no longer needed.

use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::core::PartialObjectMeta;
use ownership::{Evaluation, Scope, needs_legacy_operator};
use support::apply;
use support::reconcile::is_missing;

use crate::context::Context;
use crate::error::Error;

/// What is due about operator-legacy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// It is needed, and there.
    Keep,
    /// It is there, and not needed.
    Retire,
    /// It is needed and not there: hosted clusters are without an operator until it is installed again.
    Missing,
    /// It is not there, and not needed.
    Gone,
}

/// What is due.
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

/// Removes operator-legacy when no hosted cluster needs it, and none is wanted back on standard types. Only the operator
/// of private types does.
///
/// `running` was read before the clusters were: one that was installed since then, for a way back that nobody had asked
/// for yet, is another one.
pub(crate) async fn tend(
    ctx: &Context,
    running: Option<PartialObjectMeta<Deployment>>,
    verdicts: impl IntoIterator<Item = Evaluation>,
    is_wanted_back: bool,
) -> Result<(), Error> {
    match ctx.scope {
        Scope::Private => {}
        Scope::Legacy | Scope::All => return Ok(()),
    }
    let needed = needs_legacy_operator(verdicts) || is_wanted_back;
    ctx.metrics.legacy(needed, running.is_some());
    let Some(running) = running.filter(|_| step(needed, true) == Step::Retire) else {
        return Ok(());
    };
    let place = &ctx.legacy_deployment;
    match apply::delete(&api(ctx), &running.metadata).await {
        Ok(()) => {
            tracing::info!(deployment = %place, "No HostedCluster is legacy: operator-legacy deleted");
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
    fn it_is_retired_only_when_it_is_there_and_not_needed() {
        let steps = [(true, true), (true, false), (false, true), (false, false)];
        let steps = steps.map(|(needed, running)| step(needed, running));
        assert_eq!(steps, [Step::Keep, Step::Missing, Step::Retire, Step::Gone]);
    }
}
