//! What happens to one hosted cluster: whose it is, and if it is ours, the five steps.
//!
//! ```text
//! read ── evidence ── verdict ──┬─> mark, or tell (condition.rs)
//!                               └─> pipeline: dereference ─> validate ─> build ─> apply ─> status
//!                                                  │ being deleted
//!                                                  └─> deletion
//! ```
//!
//! What is decided is decided in pure code, of [`facts::Facts`]: `validate`, `build` and `status` have no client.

mod apply;
pub(crate) mod build;
mod condition;
mod defaults;
mod deletion;
mod dereference;
pub(crate) mod facts;
#[cfg(test)]
pub(crate) mod fixture;
pub(crate) mod migrating;
pub(crate) mod names;
pub(crate) mod operator_image;
mod pipeline;
mod references;
mod status;
mod validate;
pub(crate) mod wanted;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use api::annotations::Protocol;
use api::names::control_plane_namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{ApiResource, DynamicObject};
use kube::core::PartialObjectMeta;
use kube::runtime::events::{Event, EventType};
use kube::{Api, Resource as _};
use ownership::{
    Decision, Evaluation, Invalid, OwnershipAnnotation, Scope, capi_types, decide, evaluate,
    expected_types,
};
use serde_json::json;
use support::controller::Action;

use crate::context::Context;
use crate::control_plane_namespace;
use crate::error::Error;
use crate::migration;
pub(crate) use condition::Condition;
pub(crate) use dereference::{Cache, VirtualizationCache};

/// Field manager of marks and of the condition.
pub(crate) const MANAGER: &str = "hypershift-operator-scope";
/// Field manager of all else.
pub(crate) const MANAGER_OF_ALL: &str = "hypershift-operator";
/// What is logged of a state that no writer of the protocol produces. Alerts and people look for it.
const INVALID_STATE: &str = "Invalid annotation state detected";

/// A HostedCluster, as far as its metadata tells.
pub(crate) type Meta = PartialObjectMeta<DynamicObject>;

/// Which hosted cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Id {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// Where HostedClusters are.
pub(crate) fn resource() -> ApiResource {
    ApiResource {
        group: "hypershift.openshift.io".to_owned(),
        version: "v1beta1".to_owned(),
        api_version: "hypershift.openshift.io/v1beta1".to_owned(),
        kind: "HostedCluster".to_owned(),
        plural: "hostedclusters".to_owned(),
    }
}

/// What its annotations say.
pub(crate) fn protocol(metadata: &ObjectMeta) -> Protocol {
    Protocol::read(metadata.annotations.as_ref().unwrap_or(&BTreeMap::new()))
}

/// Decides who owns the hosted cluster, and does this operator's part about it.
pub(crate) async fn reconcile(found: Arc<Meta>, ctx: Arc<Context>) -> Result<Action, Error> {
    let id = Id::of(&found.metadata);
    // client
    let pass = ctx.passes.begin(&id).await;
    let Some(cluster) = read(&id, &ctx).await? else {
        ctx.fleet.forget(&id);
        return Ok(Action::await_change());
    };
    let namespace = control_plane_namespace::find(&ctx.client, &id.namespace, &id.name).await?;
    let protocol = namespace.protocol(protocol(&cluster.metadata));
    let expected = expected_types(&protocol);
    let evidence = ctx.evidence.of_annotated(&namespace, expected).await?;
    // pure
    let verdict = evaluate(&protocol, evidence);
    let decision = decide(ctx.scope, &verdict);
    // client
    tracing::debug!(
        namespace = id.namespace,
        name = id.name,
        ?evidence,
        ?verdict,
        ?decision,
        "Decided"
    );
    let mut action = Action::await_change();
    match decision {
        Decision::Skip => {
            drop(pass);
            if namespace.is_usable() {
                migration::acknowledge(&ctx, &id, &cluster.metadata).await?;
            }
        }
        Decision::Annotate(due) => mark(&id, &cluster.metadata, due, &ctx).await?,
        Decision::ReportInvalid => publish(&id, &cluster, verdict, &ctx).await?,
        Decision::Reconcile => {
            publish(&id, &cluster, verdict, &ctx).await?;
            let side = capi_types(ctx.scope, &protocol, evidence);
            action = pipeline::reconcile(cluster, side, &namespace, &ctx).await?;
        }
    }
    ctx.fleet.decided(id, verdict);
    Ok(action)
}

async fn read(id: &Id, ctx: &Context) -> Result<Option<DynamicObject>, Error> {
    let read = ctx.hosted_clusters(id).get_opt(&id.name).await;
    read.map_err(|source| Error::Read {
        what: format!("HostedCluster {id}"),
        source,
    })
}

/// Writes the mark that is due, if the object is still the one that was judged.
pub(crate) async fn mark(
    id: &Id,
    judged: &ObjectMeta,
    due: OwnershipAnnotation,
    ctx: &Context,
) -> Result<(), Error> {
    let (annotation, value) = due.key_value();
    let annotations = BTreeMap::from([(annotation, value)]);
    let api: Api<DynamicObject> = ctx.hosted_clusters(id);
    support::apply::annotate(&api, judged, &annotations, MANAGER)
        .await
        .map_err(|source| Error::Mark {
            object: id.to_string(),
            source,
        })?;
    ctx.metrics.marked(due);
    tracing::info!(
        namespace = id.namespace,
        name = id.name,
        annotation,
        value,
        "HostedCluster marked"
    );
    Ok(())
}

/// The condition that this operator has to write, unless it is there.
pub(crate) fn due(scope: Scope, cluster: &DynamicObject, verdict: Evaluation) -> Option<Condition> {
    match decide(scope, &verdict) {
        Decision::Skip | Decision::Annotate(_) => return None,
        Decision::Reconcile | Decision::ReportInvalid => {}
    }
    let found = condition::find(cluster);
    let failure = protocol(&cluster.metadata).failed;
    let wanted = Condition::of(scope, verdict, failure.as_deref(), found.is_some())?;
    let told = found.is_some_and(|found| wanted.is(found));
    (!told).then_some(wanted)
}

/// The cluster without what is not looked at: a fleet of them fits into memory.
pub(crate) fn slim(mut cluster: DynamicObject) -> DynamicObject {
    cluster.metadata.managed_fields = None;
    let told = condition::find(&cluster).cloned();
    cluster.data = json!({ "status": { "conditions": Vec::from_iter(told) } });
    cluster
}

/// Tells who owns it: by a condition, and by an Event when the state is invalid. Writes when that has changed only.
async fn publish(
    id: &Id,
    cluster: &DynamicObject,
    verdict: Evaluation,
    ctx: &Context,
) -> Result<(), Error> {
    let Some(wanted) = due(ctx.scope, cluster, verdict) else {
        return Ok(());
    };
    if let Some(invalid) = verdict.invalid {
        report(id, cluster, invalid, ctx).await?;
    }
    let api: Api<DynamicObject> = ctx.hosted_clusters(id);
    let object = wanted.object(condition::find(cluster));
    support::apply::status(&api, &cluster.metadata, object, MANAGER)
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
        detail = %invalid,
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

// === impl Id ===

impl Id {
    pub(crate) fn of(metadata: &ObjectMeta) -> Self {
        Self {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
        }
    }

    /// The namespace of its control plane, where its Cluster API objects are.
    pub(crate) fn control_plane_namespace(&self) -> String {
        control_plane_namespace(&self.namespace, &self.name)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

#[cfg(test)]
mod tests;
