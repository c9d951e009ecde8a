//! Objects in the hosted cluster that nodes need to join, and pods need to find the API server.

mod copies;
pub mod desired;
mod endpoints;
mod namespaces;
mod rbac;

use api::conditions::{ClusterCondition, Status};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use support::apply::Applier;
use support::error::chain;

use super::context::Context;
use super::control_plane::{self, DesiredCondition};
use super::error::Error;

/// Applies the objects, and reports the result in a condition of the HostedControlPlane.
pub(super) async fn pass(ctx: &Context) -> Result<(), Error> {
    let Some(object) = ctx.control_plane().await? else {
        return Ok(());
    };
    if object.metadata.deletion_timestamp.is_some() {
        // The cluster is being deleted.
        return Ok(());
    }
    let done = apply(ctx, &object).await;
    let desired = condition(&done);
    let generation = object.metadata.generation;
    control_plane::write(&ctx.control_planes(), &object, |status| {
        control_plane::set(
            status,
            std::slice::from_ref(&desired),
            generation,
            Timestamp::now(),
        );
    })
    .await?;
    done
}

fn condition(done: &Result<(), Error>) -> DesiredCondition {
    let (status, reason, message) = match done {
        Ok(()) => (
            Status::True,
            "AsExpected",
            "All objects of the hosted cluster are applied".to_owned(),
        ),
        Err(error) => (Status::False, "ReconcileError", chain(error)),
    };
    DesiredCondition {
        type_: ClusterCondition::ConfigOperatorReconciliationSucceeded,
        status,
        reason,
        message,
    }
}

/// Applies all objects; a failure does not stop the others, and all failures are reported.
async fn apply(ctx: &Context, object: &kube::api::DynamicObject) -> Result<(), Error> {
    let hcp = control_plane::typed(object)?;
    let applier = &ctx.applier;
    let results = [
        // Objects that nodes need to join come first.
        apply_basics(ctx, applier).await,
        apply_endpoints(&hcp, applier).await,
        copy(ctx, &hcp, applier).await,
    ];
    let mut failed: Vec<_> = results.into_iter().filter_map(Result::err).collect();
    match failed.pop() {
        None => Ok(()),
        Some(only) if failed.is_empty() => Err(only),
        Some(last) => {
            failed.push(last);
            Err(Error::Several(failed))
        }
    }
}

async fn apply_basics(ctx: &Context, applier: &Applier) -> Result<(), Error> {
    for role in rbac::roles() {
        applier.apply(&role).await?;
    }
    for binding in rbac::bindings(ctx.node_clients) {
        applier.apply(&binding).await?;
    }
    for namespace in namespaces::all() {
        applier.apply(&namespace).await?;
    }
    Ok(())
}

async fn apply_endpoints(
    hcp: &api::hypershift::v1beta1::HostedControlPlane,
    applier: &Applier,
) -> Result<(), Error> {
    let endpoint = endpoints::ApiEndpoint::of(hcp).await?;
    applier.apply(&endpoint.slice()).await?;
    Ok(())
}

async fn copy(
    ctx: &Context,
    hcp: &api::hypershift::v1beta1::HostedControlPlane,
    applier: &Applier,
) -> Result<(), Error> {
    let secrets: Api<Secret> = Api::namespaced(ctx.management.clone(), &ctx.namespace);
    let name = &hcp.spec.pull_secret.name;
    let source = secrets.get(name).await;
    let source = source.map_err(Error::client(format!("get Secret {name}")))?;
    for copy in copies::pull_secrets(&source) {
        copies::apply_pull_secret(applier, hcp, copy).await?;
    }
    if hcp.spec.additional_trust_bundle.is_some() {
        let maps: Api<ConfigMap> = Api::namespaced(ctx.management.clone(), &ctx.namespace);
        let source = maps.get(copies::USER_CA).await;
        let source = source.map_err(Error::client("get ConfigMap user-ca-bundle"))?;
        applier.apply(&copies::user_ca(&source)).await?;
    }
    if let Some(file) = &ctx.signer_ca {
        let ca = std::fs::read_to_string(file).map_err(|error| Error::Form {
            object: file.display().to_string(),
            problem: error.to_string(),
        })?;
        applier.apply(&copies::kubelet_serving_ca(ca)).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
