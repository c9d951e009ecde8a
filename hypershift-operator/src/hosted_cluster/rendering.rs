//! Renders the objects of a HostedCluster that depend on the types, for its migration.

use api::group::CapiTypes;
use api::hypershift::v1beta1::HostedCluster;
use support::error::chain;

use super::apply::{Applied, apply};
use super::build::{Planned, Step, build};
use super::dereference::dereference;
use super::validate::{Finding, validate};
use super::{Id, own_object, read};
use crate::capi::Capi;
use crate::context::Context;
use crate::control_plane_namespace::ControlPlaneNamespace;
use crate::desired::Desired;
use crate::error::Error;
use crate::facts::Facts;

/// A HostedCluster with the facts that it would have on given types.
pub(crate) struct Rendered {
    facts: Facts,
}

/// Reads a cluster and renders it as if it were on `types`; `None` if it does not exist.
pub(crate) async fn render_for(
    id: &Id,
    types: CapiTypes,
    ctx: &Context,
) -> Result<Option<Rendered>, Error> {
    let Some(object) = read(id, ctx).await? else {
        return Ok(None);
    };
    let cluster: HostedCluster =
        own_object::read(&object).map_err(|problem| Error::Unreadable {
            object: format!("HostedCluster {id}"),
            problem,
        })?;
    // A migration waits for registries until their limits: it holds no worker of the reconcile loop.
    let (facts, _) = dereference(cluster, Capi::new(types), &ctx.releases, None, ctx).await?;
    Ok(Some(Rendered { facts }))
}

// === impl Imagined ===

impl Rendered {
    /// Why the cluster cannot be on these types.
    pub(crate) fn problems(&self) -> Vec<String> {
        let findings = validate(&self.facts);
        let all = [
            ("configuration", findings.configuration),
            ("platform", findings.supported),
            ("release", findings.release),
        ];
        let bad = all.into_iter().filter_map(|(what, finding)| match finding {
            Finding::Good => None,
            Finding::Bad { message, .. } => Some(format!("{what}: {message}")),
        });
        bad.collect()
    }

    /// The operators of the control plane and their RBAC, with the proxy if the types are private.
    pub(crate) fn operators(&self) -> Result<Vec<Planned>, Error> {
        let plan = build(&self.facts).map_err(|source| Error::Build {
            object: self.facts.id.to_string(),
            source: Box::new(source),
        })?;
        let depends = |planned: &Planned| matches!(planned.step, Step::Rbac | Step::Operators);
        Ok(plan.into_iter().filter(depends).collect())
    }
}

/// The objects of a plan, in order.
pub(crate) fn objects(plan: &[Planned]) -> impl Iterator<Item = &Desired> {
    plan.iter().flat_map(|planned| &planned.objects)
}

/// Applies a plan; returns the first failure.
pub(crate) async fn apply_operators(
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
                "Failed to apply a migration step"
            );
            Err(Error::Apply(failure.error))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::facts::Labels;
    use crate::facts::fixture;
    use crate::names::KUBEVIRT_CREDENTIALS;

    #[test]
    fn no_migration_without_an_operator_that_supports_it() {
        let rendered = |types: CapiTypes| {
            let mut facts = fixture::facts(fixture::hosted_cluster("none"), types);
            facts.released_operator = Labels::Read([].into());
            Rendered { facts }
        };
        assert_eq!(
            rendered(CapiTypes::Standard).problems(),
            Vec::<String>::new()
        );
        let problems = rendered(CapiTypes::Private).problems();
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

    /// Both operators apply the same credentials, as one field manager, so that a migration has nothing to apply. The
    /// infrastructure object is moved with the others.
    #[test]
    fn a_migration_does_not_apply_the_credentials_of_virtual_machines() {
        let [standard, private] = [CapiTypes::Standard, CapiTypes::Private].map(|types| {
            let mut cluster = fixture::hosted_cluster("kubevirt");
            let kubevirt = json!({ "generateID": "x7k2p", "credentials": {
                "infraKubeConfigSecret": { "name": "infra", "key": "kubeconfig" },
                "infraNamespace": "machines",
            }});
            cluster.spec.platform.kubevirt = serde_json::from_value(kubevirt).unwrap();
            Rendered {
                facts: fixture::facts(cluster, types),
            }
        });
        let credentials = |rendered: &Rendered| {
            let plan = build(&rendered.facts).unwrap();
            let found = objects(&plan).find(|it| it.name() == KUBEVIRT_CREDENTIALS);
            found.cloned()
        };
        assert!(credentials(&private).is_some());
        assert_eq!(credentials(&private), credentials(&standard));
        let plan = private.operators().unwrap();
        for object in objects(&plan) {
            let is_applied =
                object.name() == KUBEVIRT_CREDENTIALS || object.resource.kind == "KubevirtCluster";
            assert!(!is_applied, "{object:?}");
        }
    }
}
