//! The HostedCluster reconciler: determines the owner, and runs the five steps if it is this operator.
//!
//! ```text
//! read ── observed groups ── evaluation ──┬─> annotate, or publish the condition about the owner
//!                               └─> pipeline: dereference ─> validate ─> build ─> apply ─> status
//!                                                  │ being deleted
//!                                                  └─> deletion
//! ```
//!
//! Decisions are made in pure code, based on `crate::facts::Facts`: `validate`, `build` and `status` have no client.

mod apply;
mod auto_node;
pub(crate) mod build;
mod defaults;
mod deletion;
mod dereference;
mod encryption_key;
mod infra_policy;
mod inputs;
mod oidc;
pub(crate) mod operator_image;
mod own_object;
mod pipeline;
pub(crate) mod rendering;
mod status;
mod validate;

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::DynamicObject;
use kube::runtime::events::{Event, EventType};
use kube::{Api, Resource as _};
use ownership::{
    Decision, Evaluation, Invalid, OwnershipAnnotation, capi_types, decide, evaluate,
    expected_types,
};
use support::controller::Action;

use crate::cache::{self, Part};
use crate::cluster_ref::{Id, protocol, resource};
use crate::context::Context;
use crate::control_plane_namespace;
use crate::error::Error;
use crate::handover;
use crate::names::SCOPE_FIELD_MANAGER;
use crate::owner_condition::{self, INVALID_STATE};

/// Determines the owner of a HostedCluster, and reconciles it if this operator is the owner.
pub(crate) async fn reconcile(id: Id, ctx: Arc<Context>) -> Result<Action, Error> {
    let key = cache::key(&id);
    if let Some(action) = ctx.cache.clusters.unchanged(&key, &ctx.cache.index) {
        return Ok(action);
    }
    // client
    let pass = ctx.in_flight.begin(&id).await;
    let control_plane = id.control_plane_namespace();
    let snapshot = ctx.cache.snapshot(
        &control_plane,
        Part::Owned,
        &[(cache::NAMESPACES, &control_plane, &control_plane)],
    );
    let Some(cluster) = read(&id, &ctx).await? else {
        ctx.cluster_states.forget(&id);
        return Ok(Action::await_change());
    };
    let namespace = control_plane_namespace::find(&ctx.client, &id.namespace, &id.name).await?;
    let protocol = namespace.protocol(protocol(&cluster.metadata));
    let expected = expected_types(&protocol);
    let observed_groups = ctx.observe_groups(&namespace, expected).await?;
    // pure
    let evaluation = evaluate(&protocol, observed_groups);
    let decision = decide(ctx.scope, &evaluation);
    // client
    tracing::debug!(
        namespace = id.namespace,
        name = id.name,
        ?observed_groups,
        ?evaluation,
        ?decision,
        "Decided"
    );
    let mut action = Action::await_change();
    match decision {
        Decision::Skip => {
            drop(pass);
            if namespace.is_usable() {
                handover::acknowledge(&ctx, &id, &cluster.metadata).await?;
            }
        }
        Decision::Annotate(due) => annotate(&id, &cluster.metadata, due, &ctx).await?,
        Decision::ReportInvalid => publish(&id, &cluster, evaluation, &ctx).await?,
        Decision::Reconcile => {
            publish(&id, &cluster, evaluation, &ctx).await?;
            let types = capi_types(ctx.scope, &protocol, observed_groups);
            let done = pipeline::reconcile(cluster, types, &namespace, snapshot, &ctx).await?;
            action = done.settle(key, &ctx);
        }
    }
    ctx.cluster_states.record(id, evaluation);
    Ok(action)
}

async fn read(id: &Id, ctx: &Context) -> Result<Option<DynamicObject>, Error> {
    let read = ctx.hosted_clusters(id).get_opt(&id.name).await;
    read.map_err(|source| Error::Read {
        what: format!("HostedCluster {id}"),
        source,
    })
}

/// Writes an ownership annotation, if the object has not changed since it was evaluated.
pub(crate) async fn annotate(
    id: &Id,
    evaluated: &ObjectMeta,
    due: OwnershipAnnotation,
    ctx: &Context,
) -> Result<(), Error> {
    let (annotation, value) = due.key_value();
    let annotations = BTreeMap::from([(annotation, value)]);
    let api: Api<DynamicObject> = ctx.hosted_clusters(id);
    support::apply::annotate(&api, evaluated, &annotations, SCOPE_FIELD_MANAGER)
        .await
        .map_err(|source| Error::Annotate {
            object: id.to_string(),
            source,
        })?;
    ctx.metrics.annotated(due);
    tracing::info!(
        namespace = id.namespace,
        name = id.name,
        annotation,
        value,
        "HostedCluster annotated"
    );
    Ok(())
}

/// Publishes the owner in a condition, and an Event if the state is invalid. Writes only on change.
async fn publish(
    id: &Id,
    cluster: &DynamicObject,
    evaluation: Evaluation,
    ctx: &Context,
) -> Result<(), Error> {
    let Some(desired) = owner_condition::due(ctx.scope, cluster, evaluation) else {
        return Ok(());
    };
    if let Some(invalid) = evaluation.invalid {
        report(id, cluster, invalid, ctx).await?;
    }
    let api: Api<DynamicObject> = ctx.hosted_clusters(id);
    let object = desired.object(owner_condition::find(cluster));
    support::apply::status(&api, &cluster.metadata, object, SCOPE_FIELD_MANAGER)
        .await
        .map_err(|source| Error::Status {
            object: id.to_string(),
            source,
        })?;
    Ok(())
}

async fn report(
    id: &Id,
    cluster: &DynamicObject,
    invalid: Invalid,
    ctx: &Context,
) -> Result<(), Error> {
    tracing::warn!(
        namespace = id.namespace,
        name = id.name,
        reason = invalid.reason(),
        error = %invalid,
        "{INVALID_STATE}"
    );
    let event = Event {
        type_: EventType::Warning,
        reason: invalid.reason().to_owned(),
        note: Some(format!("{INVALID_STATE}: {invalid}")),
        action: "DecideOwner".to_owned(),
        secondary: None,
    };
    let regarding = cluster.object_ref(&resource());
    ctx.recorder
        .publish(&event, &regarding)
        .await
        .map_err(|source| Error::Event {
            object: id.to_string(),
            source,
        })?;
    ctx.metrics.invalid_state(invalid);
    Ok(())
}

#[cfg(test)]
mod tests;
