//! The steps of the cleanup. One that fails does not prevent the others.

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod, Service};
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams,
    Preconditions,
};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use support::reconcile::{is_conflict, is_missing};

use super::super::context::Context;
use super::super::error::Error;
use super::super::infra::Infra;
use super::report::{Done, Remaining};

const MANAGER: &str = "hosted-cluster-config-operator";
const WEBHOOK: &str = "hosted-cluster-resource-cleanup";
const ROUTERS: &str = "openshift-ingress";
/// Label or annotation of Services that the ingress operator deletes.
const OWNED_BY_INGRESS: &str = "ingresscontroller.operator.openshift.io/owning-ingresscontroller";
/// The policy that keeps the registry from being removed.
const REGISTRY_POLICY: &str = "deny-removed-managementstate";

/// Runs all steps.
pub(super) async fn run(ctx: &Context, hcp: &DynamicObject) -> Done {
    let mut done = Done::default();
    let has = |capability: &str| has_capability(hcp, capability);
    // More could be created while the rest is deleted.
    if let Err(error) = block_creation(ctx, hcp).await {
        done.errors.push(error);
        return done;
    }
    let mut collect = |found: Result<Vec<String>, Error>| {
        found.unwrap_or_else(|error| {
            done.errors.push(error);
            Vec::new()
        })
    };
    let mut remaining = Remaining::default();
    if has("ImageRegistry") {
        remaining.image_registry = collect(image_registry(ctx).await);
    }
    if has("Ingress") {
        remaining.ingress_controllers = collect(ingress_controllers(ctx).await);
        collect(passthrough(ctx, hcp).await);
    }
    remaining.load_balancers = collect(load_balancers(ctx).await);
    remaining.volumes = collect(volumes(ctx).await);
    remaining.snapshots = collect(snapshots(ctx).await);
    done.remaining = remaining;
    done
}

fn has_capability(hcp: &DynamicObject, name: &str) -> bool {
    let disabled = hcp.data["spec"]["capabilities"]["disabled"].as_array();
    !disabled.into_iter().flatten().any(|it| it == name)
}

/// Blocks the creation of objects that create cloud resources.
async fn block_creation(ctx: &Context, hcp: &DynamicObject) -> Result<(), Error> {
    release_registry(ctx, hcp).await?;
    let webhook = webhook(has_capability(hcp, "Ingress"))?;
    ctx.applier.apply(&webhook).await?;
    Ok(())
}

/// Deletes the policy that keeps the registry from being removed: on Azure, whether a cleanup is requested or not.
pub(super) async fn release_registry(ctx: &Context, hcp: &DynamicObject) -> Result<(), Error> {
    if hcp.data["spec"]["platform"]["type"] != "Azure" {
        return Ok(());
    }
    // Without its binding, the policy has no effect.
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(ctx.guest.clone());
    let name = format!("{REGISTRY_POLICY}-binding");
    remove(&bindings, &name, &DeleteParams::default()).await?;
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(ctx.guest.clone());
    remove(&policies, REGISTRY_POLICY, &DeleteParams::default()).await
}

fn webhook(has_ingress: bool) -> Result<ValidatingWebhookConfiguration, Error> {
    let rule = |group: &str, version: &str, resources: &[&str]| {
        json!({
            "apiGroups": [group], "apiVersions": [version], "operations": ["CREATE"],
            "resources": resources,
        })
    };
    let core = [
        "pods",
        "persistentvolumeclaims",
        "persistentvolumes",
        "services",
    ];
    let mut rules = vec![rule("", "v1", &core)];
    if has_ingress {
        rules.push(rule("operator.openshift.io", "v1", &["ingresscontrollers"]));
    }
    let object = json!({
        "metadata": {
            "name": WEBHOOK,
            "labels": { super::super::resources::desired::MANAGED: "true" },
        },
        "webhooks": [{
            "name": "block-resources.hypershift.openshift.io",
            "admissionReviewVersions": ["v1"],
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "timeoutSeconds": 5,
            "clientConfig": { "service": { "namespace": "default", "name": "xxx-invalid-service-xxx" } },
            "rules": rules,
        }],
    });
    serde_json::from_value(object).map_err(|error| Error::Form {
        object: format!("ValidatingWebhookConfiguration {WEBHOOK}"),
        problem: error.to_string(),
    })
}

/// Has the registry operator delete its bucket, and returns the registry until it has.
async fn image_registry(ctx: &Context) -> Result<Vec<String>, Error> {
    let api = dynamic(ctx, "imageregistry.operator.openshift.io", "Config");
    let name = "cluster";
    let found = match api.get_opt(name).await {
        Err(error) if is_missing(&error) => None,
        found => found.map_err(Error::client("get Config cluster of the image registry"))?,
    };
    let Some(found) = found else {
        return Ok(Vec::new());
    };
    if found.data["spec"]["managementState"] != "Removed" {
        let patch = json!({ "spec": { "managementState": "Removed" } });
        let params = PatchParams {
            field_manager: Some(MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let patched = api.patch(name, &params, &Patch::Merge(&patch)).await;
        patched.map_err(Error::client("update Config cluster of the image registry"))?;
    }
    let is_left = !is_storage_removed(&found.data);
    Ok(is_left.then(|| name.to_owned()).into_iter().collect())
}

/// Whether the registry has no storage that its operator manages.
fn is_storage_removed(config: &Value) -> bool {
    let state = config["status"]["storage"]["managementState"].as_str();
    matches!(state, None | Some("" | "Removed"))
}

/// Deletes `IngressControllers`, and the routers that their operator waits for.
async fn ingress_controllers(ctx: &Context) -> Result<Vec<String>, Error> {
    let controllers = list(&dynamic(ctx, "operator.openshift.io", "IngressController")).await?;
    let resource = resource("operator.openshift.io", "IngressController");
    for found in controllers.iter().filter(|it| !is_being_deleted(*it)) {
        let namespace = found.namespace().unwrap_or_default();
        let api: Api<DynamicObject> =
            Api::namespaced_with(ctx.guest.clone(), &namespace, &resource);
        remove(&api, &found.name_any(), &of(found)).await?;
    }
    let pods: Api<Pod> = Api::namespaced(ctx.guest.clone(), ROUTERS);
    for pod in list(&pods).await? {
        remove(&pods, &pod.name_any(), &of(&pod).grace_period(0)).await?;
    }
    Ok(controllers.iter().map(object_name).collect())
}

/// Deletes Services, but for those that the ingress operator deletes.
async fn load_balancers(ctx: &Context) -> Result<Vec<String>, Error> {
    let mut services = list(&Api::<Service>::all(ctx.guest.clone())).await?;
    services.retain(|service| {
        let spec = service.spec.as_ref();
        spec.and_then(|spec| spec.type_.as_deref()) == Some("LoadBalancer")
    });
    let own = services.iter().filter(|it| !is_owned_by_ingress(it));
    for service in own.filter(|it| !is_being_deleted(*it)) {
        let namespace = service.namespace().unwrap_or_default();
        let api: Api<Service> = Api::namespaced(ctx.guest.clone(), &namespace);
        remove(&api, &service.name_any(), &of(service)).await?;
    }
    Ok(services.iter().map(object_name).collect())
}

/// Deletes what leads to the routers from the cluster that runs the virtual machines.
async fn passthrough(ctx: &Context, hcp: &DynamicObject) -> Result<Vec<String>, Error> {
    // Without them, a cluster that cannot be reached does not hold up the deletion.
    if super::super::passthrough::service_name(hcp).is_none() {
        return Ok(Vec::new());
    }
    if let Some(infra) = Infra::of(ctx, hcp).await? {
        super::super::passthrough::delete(&infra, hcp).await?;
    }
    Ok(Vec::new())
}

fn is_owned_by_ingress(service: &Service) -> bool {
    let maps = [service.labels(), service.annotations()];
    maps.iter().any(|map| map.contains_key(OWNED_BY_INGRESS))
}

/// Deletes claims, and the pods that block their deletion. Returns the volumes that are deleted with their claims.
async fn volumes(ctx: &Context) -> Result<Vec<String>, Error> {
    let claims = list(&Api::<PersistentVolumeClaim>::all(ctx.guest.clone())).await?;
    for claim in claims.iter().filter(|it| !is_being_deleted(*it)) {
        let namespace = claim.namespace().unwrap_or_default();
        let api: Api<PersistentVolumeClaim> = Api::namespaced(ctx.guest.clone(), &namespace);
        remove(&api, &claim.name_any(), &of(claim)).await?;
    }
    if !claims.is_empty() {
        let pods = list(&Api::<Pod>::all(ctx.guest.clone())).await?;
        for pod in pods.iter().filter(|pod| uses_a_claim(pod)) {
            let namespace = pod.namespace().unwrap_or_default();
            let api: Api<Pod> = Api::namespaced(ctx.guest.clone(), &namespace);
            remove(&api, &pod.name_any(), &of(pod).grace_period(0)).await?;
        }
    }
    let volumes = list(&Api::<PersistentVolume>::all(ctx.guest.clone())).await?;
    let volumes = volumes.iter().filter(|it| is_deleted_with_claim(it));
    Ok(volumes.map(object_name).collect())
}

/// A volume that is retained stays, whatever is waited for.
fn is_deleted_with_claim(volume: &PersistentVolume) -> bool {
    let spec = volume.spec.as_ref();
    let policy = spec.and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref());
    policy != Some("Retain") && spec.is_some_and(|spec| spec.claim_ref.is_some())
}

fn uses_a_claim(pod: &Pod) -> bool {
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_ref());
    let mut volumes = volumes.into_iter().flatten();
    volumes.any(|volume| volume.persistent_volume_claim.is_some())
}

async fn snapshots(ctx: &Context) -> Result<Vec<String>, Error> {
    let (group, kind) = ("snapshot.storage.k8s.io", "VolumeSnapshot");
    let snapshots = list(&dynamic(ctx, group, kind)).await?;
    for found in snapshots.iter().filter(|it| !is_being_deleted(*it)) {
        let namespace = found.namespace().unwrap_or_default();
        let resource = resource(group, kind);
        let api: Api<DynamicObject> =
            Api::namespaced_with(ctx.guest.clone(), &namespace, &resource);
        remove(&api, &found.name_any(), &of(found)).await?;
    }
    Ok(snapshots.iter().map(object_name).collect())
}

fn resource(group: &str, kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind))
}

fn dynamic(ctx: &Context, group: &str, kind: &str) -> Api<DynamicObject> {
    Api::all_with(ctx.guest.clone(), &resource(group, kind))
}

/// All objects; none of a kind that is not served.
async fn list<K>(api: &Api<K>) -> Result<Vec<K>, Error>
where
    K: kube::Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    match api.list(&ListParams::default()).await {
        Ok(found) => Ok(found.items),
        Err(error) if is_missing(&error) => Ok(Vec::new()),
        Err(error) => Err(Error::client(format!("list {}", api.resource_url()))(error)),
    }
}

/// Deletes this object, and no other one of its name.
fn of<K: kube::Resource>(object: &K) -> DeleteParams {
    DeleteParams {
        preconditions: Some(Preconditions {
            uid: object.meta().uid.clone(),
            resource_version: None,
        }),
        ..DeleteParams::default()
    }
}

async fn remove<K>(api: &Api<K>, name: &str, params: &DeleteParams) -> Result<(), Error>
where
    K: kube::Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let path = format!("{}/{name}", api.resource_url());
    match api.delete(name, params).await {
        Ok(_) => tracing::info!(object = path, "Deleted object of the hosted cluster"),
        Err(error) if is_missing(&error) || is_conflict(&error) => {}
        Err(error) => return Err(Error::client(format!("delete {path}"))(error)),
    }
    Ok(())
}

fn is_being_deleted<K: kube::Resource>(object: &K) -> bool {
    object.meta().deletion_timestamp.is_some()
}

fn object_name<K: kube::Resource>(object: &K) -> String {
    match object.namespace() {
        Some(namespace) => format!("{namespace}/{}", object.name_any()),
        None => object.name_any(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn creation_of_cloud_resources_is_blocked() {
        for (has_ingress, count) in [(false, 1), (true, 2)] {
            let webhooks = webhook(has_ingress).unwrap().webhooks.unwrap();
            assert_eq!(webhooks[0].failure_policy.as_deref(), Some("Fail"));
            assert_eq!(webhooks[0].rules.as_ref().unwrap().len(), count);
        }
    }

    #[test]
    fn services_of_the_ingress_operator_are_left_to_it() {
        for (metadata, expected) in [
            (json!({}), false),
            (json!({ "labels": { OWNED_BY_INGRESS: "a" } }), true),
            (json!({ "annotations": { OWNED_BY_INGRESS: "" } }), true),
        ] {
            let service = serde_json::from_value(json!({ "metadata": metadata })).unwrap();
            assert_eq!(is_owned_by_ingress(&service), expected, "{metadata}");
        }
    }

    #[test]
    fn retained_volumes_and_volumes_without_a_claim_are_not_waited_for() {
        for (spec, expected) in [
            (json!({ "claimRef": { "name": "a" } }), true),
            (
                json!({ "claimRef": { "name": "a" }, "persistentVolumeReclaimPolicy": "Retain" }),
                false,
            ),
            (json!({ "persistentVolumeReclaimPolicy": "Delete" }), false),
        ] {
            let volume = serde_json::from_value(json!({ "spec": spec })).unwrap();
            assert_eq!(is_deleted_with_claim(&volume), expected, "{spec}");
        }
    }

    #[test]
    fn registries_without_managed_storage_are_removed() {
        for (state, expected) in [
            (Value::Null, true),
            (json!(""), true),
            (json!("Removed"), true),
            (json!("Managed"), false),
            (json!("Unmanaged"), false),
        ] {
            let config = json!({ "status": { "storage": { "managementState": state } } });
            assert_eq!(is_storage_removed(&config), expected, "{state}");
        }
    }
}
