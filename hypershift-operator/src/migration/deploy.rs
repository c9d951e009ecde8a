//! Deploys the operators of the other types to a control plane, and saves the previous ones.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, PostParams};
use serde_json::{Value, json};
use support::apply;
use support::reconcile::is_missing;

use super::workloads::is_stopped;
use crate::context::Context;
use crate::control_plane_namespace::ControlPlaneNamespace;
use crate::desired::Desired;
use crate::error::Error;
use crate::hosted_cluster::build::Planned;
use crate::hosted_cluster::rendering;

/// The ConfigMap with the previous objects.
const SAVED: &str = "private-capi-migration-operators";
/// Annotation: the migration that it was saved for.
const MIGRATION: &str = "hypershift.openshift.io/migration-id";
/// Kinds with confidential data, which must not be in a ConfigMap and does not depend on the types.
const EXCLUDED: [&str; 1] = ["Secret"];

/// Saves the current objects, once for each migration, then writes the operators of the other types.
pub(super) async fn change(
    ctx: &Context,
    namespace: &ControlPlaneNamespace,
    migration: &str,
    plan: Vec<Planned>,
) -> Result<(), Error> {
    save(ctx, namespace, migration, &plan).await?;
    rendering::apply_operators(namespace, plan, ctx).await
}

/// Restores what was saved for this migration, with the controllers scaled down.
pub(super) async fn restore(
    ctx: &Context,
    namespace: &ControlPlaneNamespace,
    migration: &str,
) -> Result<(), Error> {
    let Some(saved) = found(ctx, namespace).await? else {
        return Ok(());
    };
    if !is_of(&saved.metadata, migration) {
        return Ok(());
    }
    for text in saved.data.unwrap_or_default().values() {
        let entry: Value = serde_json::from_str(text).map_err(|error| Error::Unreadable {
            object: format!("ConfigMap {namespace}/{SAVED}"),
            problem: error.to_string(),
        })?;
        restore_object(ctx, namespace, &entry).await?;
    }
    Ok(())
}

/// Deletes the saved objects.
pub(super) async fn forget(ctx: &Context, namespace: &ControlPlaneNamespace) -> Result<(), Error> {
    let Some(saved) = found(ctx, namespace).await? else {
        return Ok(());
    };
    let api: Api<ConfigMap> = Api::namespaced(ctx.client.clone(), namespace);
    match apply::delete(&api, &saved.metadata).await {
        Ok(()) => Ok(()),
        Err(error) if is_missing(&error) => Ok(()),
        Err(source) => Err(failed(format!("ConfigMap {namespace}/{SAVED}"))(source)),
    }
}

async fn save(
    ctx: &Context,
    namespace: &ControlPlaneNamespace,
    migration: &str,
    plan: &[Planned],
) -> Result<(), Error> {
    let before = found(ctx, namespace).await?;
    if before
        .as_ref()
        .is_some_and(|it| is_of(&it.metadata, migration))
    {
        return Ok(());
    }
    if before.is_some() {
        // From a previous migration: its objects are outdated.
        forget(ctx, namespace).await?;
    }
    let mut data = BTreeMap::new();
    for desired in rendering::objects(plan) {
        if let Some((key, entry)) = entry(ctx, namespace, desired).await? {
            data.insert(key, entry.to_string());
        }
    }
    let saved = ConfigMap {
        metadata: ObjectMeta {
            name: Some(SAVED.to_owned()),
            namespace: Some(namespace.to_string()),
            annotations: Some([(MIGRATION.to_owned(), migration.to_owned())].into()),
            ..ObjectMeta::default()
        },
        data: Some(data),
        ..ConfigMap::default()
    };
    let api: Api<ConfigMap> = Api::namespaced(ctx.client.clone(), namespace);
    let created = api.create(&PostParams::default(), &saved).await;
    created
        .map(drop)
        .map_err(failed(format!("ConfigMap {namespace}/{SAVED}")))
}

/// The current state of an object and its kind. Cluster-scoped objects are the same for both types.
async fn entry(
    ctx: &Context,
    namespace: &ControlPlaneNamespace,
    desired: &Desired,
) -> Result<Option<(String, Value)>, Error> {
    let resource = &desired.resource;
    let is_here = desired.namespace() == Some(namespace);
    if !is_here || EXCLUDED.contains(&resource.kind.as_str()) {
        return Ok(None);
    }
    let name = desired.name();
    let api: Api<DynamicObject> = Api::namespaced_with(ctx.client.clone(), namespace, resource);
    let found = api.get_opt(name).await;
    let found = found.map_err(|source| Error::Read {
        what: format!("{} {namespace}/{name}", resource.kind),
        source,
    })?;
    let key = format!("{}.{name}", resource.kind.to_lowercase());
    let entry = json!({
        "resource": {
            "group": resource.group,
            "version": resource.version,
            "kind": resource.kind,
            "plural": resource.plural,
        },
        "name": name,
        "object": found.map(without_server_fields),
    });
    Ok(Some((key, entry)))
}

/// An object without fields that the API server sets.
fn without_server_fields(mut object: DynamicObject) -> DynamicObject {
    object.metadata = ObjectMeta {
        name: object.metadata.name,
        namespace: object.metadata.namespace,
        labels: object.metadata.labels,
        annotations: object.metadata.annotations,
        finalizers: object.metadata.finalizers,
        owner_references: object.metadata.owner_references,
        ..ObjectMeta::default()
    };
    if let Some(fields) = object.data.as_object_mut() {
        fields.remove("status");
    }
    object
}

async fn restore_object(
    ctx: &Context,
    namespace: &ControlPlaneNamespace,
    entry: &Value,
) -> Result<(), Error> {
    let text = |key: &str| {
        entry["resource"][key]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let (group, version) = (text("group"), text("version"));
    let resource = ApiResource {
        api_version: if group.is_empty() {
            version.clone()
        } else {
            format!("{group}/{version}")
        },
        group,
        version,
        kind: text("kind"),
        plural: text("plural"),
    };
    let name = entry["name"].as_str().unwrap_or_default();
    let object = format!("{} {namespace}/{name}", resource.kind);
    let api: Api<DynamicObject> = Api::namespaced_with(ctx.client.clone(), namespace, &resource);
    let now = api.get_opt(name).await;
    let now = now.map_err(|source| Error::Read {
        what: object.clone(),
        source,
    })?;
    let before: Option<DynamicObject> =
        serde_json::from_value(entry["object"].clone()).map_err(|error| Error::Unreadable {
            object: object.clone(),
            problem: error.to_string(),
        })?;
    match (before, now) {
        (Some(before), Some(now)) => {
            let desired = stopped(before, &now);
            let replaced = api.replace(name, &PostParams::default(), &desired).await;
            replaced.map(drop).map_err(failed(object))
        }
        (Some(before), None) => {
            let created = api.create(&PostParams::default(), &before).await;
            created.map(drop).map_err(failed(object))
        }
        (None, Some(now)) => match apply::delete(&api, &now.metadata).await {
            Err(error) if !is_missing(&error) => Err(failed(object)(error)),
            Ok(()) | Err(_) => Ok(()),
        },
        (None, None) => Ok(()),
    }
}

/// The previous object with the current version, scaled to zero if it is a Deployment that a migration stops.
fn stopped(mut before: DynamicObject, now: &DynamicObject) -> DynamicObject {
    before.metadata.uid.clone_from(&now.metadata.uid);
    before
        .metadata
        .resource_version
        .clone_from(&now.metadata.resource_version);
    if before.data["spec"]["replicas"].is_number() && is_writer(&before) {
        // It was saved while scaled down, together with the annotation that has its prior replicas.
        before.data["spec"]["replicas"] = json!(0);
    }
    before
}

/// Whether an object is a Deployment that a migration stops. An unreadable one is restored scaled to zero, too.
fn is_writer(object: &DynamicObject) -> bool {
    let deployment = serde_json::from_value::<Deployment>(json!(object));
    deployment.map_or(true, |deployment| is_stopped(&deployment).unwrap_or(true))
}

fn is_of(metadata: &ObjectMeta, migration: &str) -> bool {
    let annotations = metadata.annotations.as_ref();
    annotations.is_some_and(|it| it.get(MIGRATION).is_some_and(|id| id == migration))
}

async fn found(
    ctx: &Context,
    namespace: &ControlPlaneNamespace,
) -> Result<Option<ConfigMap>, Error> {
    let api: Api<ConfigMap> = Api::namespaced(ctx.client.clone(), namespace);
    let found = api.get_opt(SAVED).await;
    found.map_err(|source| Error::Read {
        what: format!("ConfigMap {namespace}/{SAVED}"),
        source,
    })
}

fn failed(object: String) -> impl FnOnce(kube::Error) -> Error {
    move |source| Error::Write { object, source }
}

#[cfg(test)]
mod tests {
    use control_plane_component::USES_CAPI;

    use super::*;

    #[test]
    fn deployments_that_use_capi_are_restored_scaled_to_zero() {
        let deployment = |name: &str, labels: Value| {
            let object = json!({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": { "name": name, "labels": labels, "resourceVersion": "1" },
                "spec": { "replicas": 2, "selector": {}, "template": {} },
            });
            serde_json::from_value::<DynamicObject>(object).unwrap()
        };
        for (name, label, replicas) in [
            ("control-plane-operator", json!({}), 0),
            ("cluster-api", json!({}), 0),
            ("new-component", json!({ USES_CAPI: "proxied" }), 0),
            ("new-component", json!({ USES_CAPI: "sometimes" }), 0),
            ("other", json!({}), 2),
        ] {
            let mut now = deployment(name, json!({}));
            now.metadata.resource_version = Some("7".to_owned());
            let back = stopped(deployment(name, label.clone()), &now);
            assert_eq!(back.data["spec"]["replicas"], replicas, "{name} {label}");
            assert_eq!(back.metadata.resource_version.as_deref(), Some("7"));
        }
    }
}
