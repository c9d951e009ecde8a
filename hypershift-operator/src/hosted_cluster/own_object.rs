//! Writes to a HostedCluster itself, in place of objects that are made for it: fields that the user left out, its finalizer,
//! its annotation, and its status.

use api::conditions::{ClusterCondition, Status};
use api::hypershift::v1beta1::HostedCluster;
use jiff::Timestamp;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use support::apply::Applier;

use super::status::ConditionUpdate;
use super::{Id, defaults};
use crate::context::Context;
use crate::error::Error;
use crate::facts::Facts;
use crate::names::{FINALIZER, HAS_BEEN_AVAILABLE};
use crate::platform::kubevirt::base_domain;

/// Field manager of defaults, which are set once.
const DEFAULTS: &str = "hypershift-operator-defaults";
/// Field manager of the domain that is the infrastructure cluster's.
const BASE_DOMAIN: &str = "hypershift-operator-base-domain";
/// The reason of a condition about a HostedCluster that is not reconciled.
const INVALID: &str = "InvalidConfiguration";

/// Sets fields that the user left out, before objects are named by them.
pub(super) async fn with_defaults(
    cluster: HostedCluster,
    ctx: &Context,
) -> Result<HostedCluster, Error> {
    let Some(missing) = defaults::missing(&cluster) else {
        return Ok(cluster);
    };
    let once = Applier::new(ctx.client.clone(), DEFAULTS);
    ensure_finalizer(&cluster, false, &ctx.applier()).await?;
    if missing["spec"]
        .as_object()
        .is_none_or(serde_json::Map::is_empty)
    {
        return Ok(cluster);
    }
    let id = Id::of(&cluster.metadata);
    let body = json!({
        "metadata": { "namespace": id.namespace, "name": id.name },
        "spec": missing["spec"],
    });
    let written = once.apply_value(&super::resource(), body).await?;
    read(&written.object).map_err(|problem| Error::Unreadable {
        object: format!("HostedCluster {id}"),
        problem,
    })
}

/// Sets the domain of a HostedCluster that has that of its infrastructure cluster. If it is not known, the facts get the
/// reason. Returns whether it was set: then the HostedCluster has changed.
pub(super) async fn set_base_domain(facts: &mut Facts, ctx: &Context) -> Result<bool, Error> {
    let domain = match base_domain::of(facts, &ctx.client, &ctx.virtualization).await {
        None => return Ok(false),
        Some(Err(problem)) => {
            facts.no_base_domain = Some(problem);
            return Ok(false);
        }
        Some(Ok(domain)) => domain,
    };
    let Id { namespace, name } = &facts.id;
    let body = json!({
        "metadata": { "namespace": namespace, "name": name },
        "spec": { "dns": { "baseDomain": domain } },
    });
    let once = Applier::new(ctx.client.clone(), BASE_DOMAIN);
    once.apply_value(&super::resource(), body).await?;
    Ok(true)
}

/// Applies the finalizer, and the annotation of a HostedCluster that has been available: all fields of the object that
/// this field manager owns.
pub(super) async fn ensure_finalizer(
    cluster: &HostedCluster,
    available: bool,
    applier: &Applier,
) -> Result<(), Error> {
    let id = Id::of(&cluster.metadata);
    let annotations = cluster.metadata.annotations.as_ref();
    let has_been_available = annotations.is_some_and(|it| it.contains_key(HAS_BEEN_AVAILABLE));
    let mut body = json!({ "metadata": {
        "namespace": id.namespace,
        "name": id.name,
        "finalizers": [FINALIZER],
    }});
    if available || has_been_available {
        body["metadata"]["annotations"] = json!({ HAS_BEEN_AVAILABLE: "true" });
    }
    applier.ensure_value(&super::resource(), body).await?;
    Ok(())
}

/// Writes the status, if it has changed.
pub(super) async fn publish(id: &Id, status: Value, ctx: &Context) -> Result<(), Error> {
    let body = json!({
        "metadata": { "namespace": id.namespace, "name": id.name },
        "status": status,
    });
    ctx.applier()
        .ensure_status(&super::resource(), body)
        .await?;
    Ok(())
}

/// The object, or why it does not deserialize.
pub(super) fn read(object: &DynamicObject) -> Result<HostedCluster, String> {
    let value = serde_json::to_value(object).map_err(|error| error.to_string())?;
    serde_json::from_value(value).map_err(|error| error.to_string())
}

/// Reports a HostedCluster that does not deserialize: in a condition, or, if the API server rejects the status because
/// the object does not match its schema, in an Event and the log. Nothing else is written.
pub(super) async fn unreadable(
    object: &DynamicObject,
    problem: &str,
    ctx: &Context,
) -> Result<(), Error> {
    let id = Id::of(&object.metadata);
    let message = unreadable_message(object, problem);
    let about = ClusterCondition::ValidConfiguration;
    let condition = ConditionUpdate::new(about, Status::False, INVALID, &message);
    let is_refused = match publish(&id, changed(object, &[condition]), ctx).await {
        Ok(()) => false,
        Err(error) if error.is_invalid() => true,
        Err(error) => return Err(error),
    };
    // `kubectl describe` shows Events to a user who waits for a deletion.
    if is_refused || is_held(object) {
        let (namespace, name) = (&id.namespace, &id.name);
        tracing::warn!(namespace, name, error = message, "Skipping HostedCluster");
        crate::events::warn(object, INVALID, &message, ctx).await;
    }
    Ok(())
}

fn unreadable_message(object: &DynamicObject, problem: &str) -> String {
    let consequence = if is_held(object) {
        format!(
            " Until then the objects of the cluster cannot be deleted, and the deletion waits for finalizer \
             {FINALIZER}."
        )
    } else {
        String::new()
    };
    format!(
        "failed to read the HostedCluster: {problem}. Correct the field, or upgrade the operator to a version that \
         knows it.{consequence}"
    )
}

/// Whether the object is being deleted, and has this operator's finalizer.
pub(super) fn is_held(object: &DynamicObject) -> bool {
    let mut finalizers = object.metadata.finalizers.iter().flatten();
    object.metadata.deletion_timestamp.is_some() && finalizers.any(|it| it == FINALIZER)
}

/// Reports that the control plane namespace belongs to another HostedCluster. Nothing else is written, and no finalizer is
/// added.
pub(super) async fn refuse(
    object: &DynamicObject,
    message: String,
    ctx: &Context,
) -> Result<(), Error> {
    let about = ClusterCondition::ValidConfiguration;
    let condition = ConditionUpdate::new(about, Status::False, INVALID, message);
    let id = Id::of(&object.metadata);
    publish(&id, changed(object, &[condition]), ctx).await
}

/// The current status with some conditions replaced. The condition about the owner has another field manager.
pub(super) fn changed(object: &DynamicObject, updates: &[ConditionUpdate]) -> Value {
    let mut status = object
        .data
        .get("status")
        .cloned()
        .unwrap_or_else(|| json!({}));
    let old = status["conditions"].take();
    let typed = serde_json::from_value::<Vec<_>>(old.clone()).unwrap_or_default();
    let generation = object.metadata.generation.unwrap_or_default();
    let old = old.as_array().cloned().unwrap_or_default();
    let kept = old.into_iter().filter(|it| {
        it["type"] != ClusterCondition::PrivateCapiTypes.as_str()
            && updates.iter().all(|new| it["type"] != new.about)
    });
    let new = updates
        .iter()
        .map(|it| it.condition(&typed, generation, Timestamp::now()));
    status["conditions"] = kept.chain(new).collect();
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreadable_cluster_reports_the_finalizer_that_blocks() {
        for (deleted, finalizer, expected) in [
            (None, FINALIZER, false),
            (Some("2030-01-31T12:00:00Z"), FINALIZER, true),
            (Some("2030-01-31T12:00:00Z"), "example.com/other", false),
        ] {
            let object: DynamicObject = serde_json::from_value(json!({
                "apiVersion": "hypershift.openshift.io/v1beta1",
                "kind": "HostedCluster",
                "metadata": {
                    "namespace": "clusters", "name": "a",
                    "deletionTimestamp": deleted, "finalizers": [finalizer],
                },
            }))
            .unwrap();
            let message = unreadable_message(&object, "unknown variant `Sometimes`");
            assert!(message.contains("Sometimes"), "{message}");
            assert!(message.contains("Correct the field"), "{message}");
            assert_eq!(message.contains(FINALIZER), expected, "{message}");
        }
    }
}
