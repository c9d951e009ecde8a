//! What of a hosted cluster depends on its side: asked for by its migration, which does not go through a whole pass.

use api::group::Side;
use api::hypershift::v1beta1::HostedCluster;
use support::error::chain;

use super::apply::{Applied, apply};
use super::build::{Planned, Step, build};
use super::dereference::dereference;
use super::facts::Facts;
use super::validate::{Verdict, validate};
use super::wanted::Wanted;
use super::{Id, pipeline, read};
use crate::capi::Capi;
use crate::context::Context;
use crate::control_plane_namespace::ControlPlaneNamespace;
use crate::error::Error;

/// A hosted cluster, looked at as if it were on a side.
pub(crate) struct Imagined {
    facts: Facts,
}

/// Reads all about a cluster as if it were on `side`; nothing if it is gone.
pub(crate) async fn imagine(id: &Id, side: Side, ctx: &Context) -> Result<Option<Imagined>, Error> {
    let Some(object) = read(id, ctx).await? else {
        return Ok(None);
    };
    let cluster: HostedCluster = pipeline::read(&object).map_err(|problem| Error::Unreadable {
        object: id.to_string(),
        problem,
    })?;
    // A migration waits for registries until their limits: it holds no worker of the reconcile loop.
    let facts = dereference(cluster, Capi::new(side), &ctx.releases, ctx).await?;
    Ok(Some(Imagined { facts }))
}

// === impl Imagined ===

impl Imagined {
    /// What speaks against the cluster being there, in words.
    pub(crate) fn problems(&self) -> Vec<String> {
        let verdicts = validate(&self.facts);
        let all = [
            ("configuration", verdicts.configuration),
            ("platform", verdicts.supported),
            ("release", verdicts.release),
        ];
        let bad = all.into_iter().filter_map(|(what, verdict)| match verdict {
            Verdict::Good => None,
            Verdict::Bad { message, .. } => Some(format!("{what}: {message}")),
        });
        bad.collect()
    }

    /// The operators of the control plane, and what they may do: with the proxy or without, by the side.
    pub(crate) fn operators(&self) -> Result<Vec<Planned>, Error> {
        let plan = build(&self.facts).map_err(|source| Error::Build {
            object: self.facts.id.to_string(),
            source: Box::new(source),
        })?;
        let depends = |planned: &Planned| matches!(planned.step, Step::Rights | Step::Operators);
        Ok(plan.into_iter().filter(depends).collect())
    }
}

/// The objects of a plan, in order.
pub(crate) fn objects(plan: &[Planned]) -> impl Iterator<Item = &Wanted> {
    plan.iter().flat_map(|planned| &planned.objects)
}

/// Writes a plan; the first failure is told.
pub(crate) async fn carry_out(
    namespace: &ControlPlaneNamespace,
    plan: Vec<Planned>,
    ctx: &Context,
) -> Result<(), Error> {
    let Applied { failures, .. } = apply(&ctx.applier(), namespace, plan).await;
    match failures.into_iter().next() {
        Some(failure) => {
            tracing::debug!(
                step = failure.step.as_str(),
                error = chain(&failure.error),
                "Step of a migration failed"
            );
            Err(Error::Apply(failure.error))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::facts::Labels;
    use super::super::fixture;
    use super::*;

    #[test]
    fn a_cluster_whose_operator_knows_nothing_of_private_types_stays_where_it_is() {
        let imagined = |side: Side| {
            let mut facts = fixture::facts(fixture::hosted_cluster("none"), side);
            facts.released_operator = Labels::Read([].into());
            Imagined { facts }
        };
        assert_eq!(imagined(Side::Standard).problems(), Vec::<String>::new());
        let problems = imagined(Side::Private).problems();
        let [problem] = &problems[..] else {
            unreachable!("{problems:?}");
        };
        assert!(
            problem
                .starts_with("platform: the cluster is on private Cluster API types, or is to be"),
            "{problem}"
        );
        assert!(
            problem.contains("--control-plane-operator-image"),
            "{problem}"
        );
    }
}
