//! The NetworkPolicy of virtual machines on another infrastructure cluster, with the kubeconfig of the user: applied, and
//! deleted with the HostedCluster.

use k8s_openapi::api::core::v1::Secret;
use tokio::time::Instant;

use super::build::virtual_machines;
use crate::context::Context;
use crate::error::Error;
use crate::facts::references::{Purpose, references};
use crate::facts::{Facts, Found, InfraPolicy};
use crate::platform::kubevirt::client::{Given, InfraCluster, given};
use crate::platform::kubevirt::infrastructure::external;
use crate::platform::kubevirt::policy;
use crate::platform::kubevirt::policy_event::{self, Warning};

/// Applies the policy, and records the result. Nothing is done if the machines are on this cluster, or if no time is left for
/// requests to theirs: then the next reconcile does it.
pub(super) async fn ensure(facts: &mut Facts, ctx: &Context) {
    if let Some(result) = attempt(facts, ctx).await {
        facts.infra_policy = Some(result);
    }
}

async fn attempt(facts: &Facts, ctx: &Context) -> Option<InfraPolicy> {
    let user = given(facts)?;
    let generation = facts.cluster.metadata.generation.unwrap_or_default();
    // Two clusters may have the same kubeconfig, and the policy depends on the specification.
    let place = (
        format!("{}/{}", user.place.0, facts.infra_id()),
        format!("{}/{generation}", user.place.1),
    );
    let policies = &ctx.virtualization.policies;
    let (home, time) = (&facts.id.namespace, &facts.infra_time);
    let request = |deadline| apply(facts, &user, deadline);
    policies.once(home, Some(place), time, request).await
}

async fn apply(facts: &Facts, user: &Given<'_>, deadline: Instant) -> InfraPolicy {
    let infra = match InfraCluster::of(facts, user, deadline).await {
        Ok(infra) => infra,
        Err(problem) => return InfraPolicy::Refused(problem),
    };
    let networks = policy::networks(&infra).await;
    let known = networks.as_deref().unwrap_or_default();
    let desired = virtual_machines::external_policy(facts, infra.namespace(), known);
    let applied = policy::apply(&infra, facts.infra_id(), &desired).await;
    let result = match (applied, networks) {
        (Err(problem), _) => InfraPolicy::Refused(problem),
        (Ok(()), Err(problem)) => InfraPolicy::WithoutNetworks(problem),
        (Ok(()), Ok(_)) => InfraPolicy::Applied,
    };
    if let Some((reason, message)) = result.problem() {
        let warning = Warning {
            infra_id: facts.infra_id(),
            policy: &virtual_machines::external_name(facts.infra_id()),
            reason,
            message: &message,
        };
        policy_event::write(&infra, warning).await;
    }
    result
}

/// Deletes the policy of a HostedCluster that is being deleted, once it has no machines any more. A failure does not hold
/// the deletion: the infrastructure cluster may be gone, and the policy selects machines of this HostedCluster only.
pub(super) async fn delete(facts: &Facts, ctx: &Context) -> Result<(), Error> {
    if external(facts).is_none() || facts.infra_id().is_empty() {
        return Ok(());
    }
    // Of a HostedCluster that is being deleted, nothing else is read.
    let mut facts = facts.clone();
    let references = references(&facts.cluster).into_iter();
    for reference in references.filter(|it| it.purpose == Purpose::KubevirtCredentials) {
        let found = ctx
            .get::<Secret>(&facts.id.namespace, &reference.name)
            .await?;
        let found = found.map_or(Found::Missing, |it| Found::Secret(Box::new(it)));
        facts.referenced.push((reference, found));
    }
    let Some(user) = given(&facts) else {
        return Ok(());
    };
    let (secret, version) = &user.place;
    let place = (format!("{secret}/{}", facts.infra_id()), version.clone());
    let deletions = &ctx.virtualization.deletions;
    let (home, time) = (&facts.id.namespace, &facts.infra_time);
    let request = |deadline| remove(&facts, &user, deadline);
    deletions.once(home, Some(place), time, request).await;
    Ok(())
}

async fn remove(facts: &Facts, user: &Given<'_>, deadline: Instant) {
    let name = virtual_machines::external_name(facts.infra_id());
    let removed = match InfraCluster::of(facts, user, deadline).await {
        Ok(infra) => policy::delete(&infra, facts.infra_id(), &name).await,
        Err(problem) => Err(problem),
    };
    if let Err(error) = removed {
        let cluster = facts.id.to_string();
        tracing::warn!(
            cluster,
            name,
            error,
            "NetworkPolicy on infrastructure cluster not deleted"
        );
    }
}

#[cfg(test)]
mod tests;
