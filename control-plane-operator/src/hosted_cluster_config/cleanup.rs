//! Deletes load balancers and volumes of a hosted cluster before the cluster is deleted.
//!
//! They could not be found once its API server is deleted. Creating new ones is blocked meanwhile by a webhook whose
//! Service does not exist.

use std::sync::Mutex;
use std::time::Duration;

use api::annotations::cluster::CLEANUP_CLOUD_RESOURCES;
use api::conditions::{ClusterCondition, Status};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod, Service};
use kube::api::{DeleteParams, DynamicObject, ListParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;
use support::error::chain;
use support::reconcile::is_missing;

use super::context::Context;
use super::control_plane::{self, DesiredCondition};
use super::error::Error;

/// Polling interval for the remaining resources.
pub(super) const PERIOD: Duration = Duration::from_secs(5);
/// Consecutive failures after which the cleanup is skipped, because the cluster is unreachable.
const FAILURE_THRESHOLD: u32 = 5;
/// Time since the deletion after which the cleanup of an unreachable cluster is skipped.
const CLEANUP_TIMEOUT: SignedDuration = SignedDuration::from_mins(5);

/// Remaining resources in the hosted cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Remaining {
    load_balancers: Vec<String>,
    claims: Vec<String>,
    volumes: Vec<String>,
}

/// Consecutive failures. Each process has exactly one hosted cluster.
static FAILED: Mutex<u32> = Mutex::new(0);

/// Cleans up if the cluster is being deleted and requests it.
pub(super) async fn pass(ctx: &Context) -> Result<(), Error> {
    let Some(object) = ctx.control_plane().await?.filter(|it| is_requested(it)) else {
        return Ok(());
    };
    let remaining = delete_cloud_resources(ctx).await;
    let failures = count(remaining.is_err());
    let deleted = object
        .metadata
        .deletion_timestamp
        .as_ref()
        .map(|time| time.0);
    let since = deleted.map_or(SignedDuration::ZERO, |time| {
        Timestamp::now().duration_since(time)
    });
    let desired = condition(&remaining, failures, since);
    let generation = object.metadata.generation;
    control_plane::write(&ctx.control_planes(), &object, |status| {
        control_plane::set(
            status,
            std::slice::from_ref(&desired),
            generation,
            Timestamp::now(),
        );
    })
    .await
}

fn count(is_failure: bool) -> u32 {
    let mut failed = FAILED
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    *failed = if is_failure { *failed + 1 } else { 0 };
    *failed
}

fn is_requested(object: &DynamicObject) -> bool {
    let desired = CLEANUP_CLOUD_RESOURCES.get(object.annotations());
    object.metadata.deletion_timestamp.is_some() && matches!(desired, Ok(Some(true)))
}

fn condition(
    remaining: &Result<Remaining, Error>,
    failures: u32,
    waited: SignedDuration,
) -> DesiredCondition {
    let (status, reason, message) = match remaining {
        Ok(remaining) if *remaining == Remaining::default() => (
            Status::True,
            "AsExpected",
            "All load balancers and volumes are deleted".to_owned(),
        ),
        Ok(remaining) => (
            Status::False,
            "RemainingCloudResources",
            remaining.to_string(),
        ),
        Err(error) if failures >= FAILURE_THRESHOLD || waited >= CLEANUP_TIMEOUT => (
            Status::True,
            "CloudResourcesCleanupSkipped",
            format!(
                "Skipped cleanup: the hosted cluster is unreachable ({}). Check the cloud account for leftover \
                 load balancers and volumes.",
                chain(error)
            ),
        ),
        Err(error) => (Status::False, "CleanupFailed", chain(error)),
    };
    DesiredCondition {
        type_: ClusterCondition::CloudResourcesDestroyed,
        status,
        reason,
        message,
    }
}

/// Deletes cloud resources, and returns those that still exist.
async fn delete_cloud_resources(ctx: &Context) -> Result<Remaining, Error> {
    ctx.applier.apply(&blocking_webhook()?).await?;
    Ok(Remaining {
        load_balancers: load_balancers(ctx).await?,
        claims: claims(ctx).await?,
        volumes: volumes(ctx).await?,
    })
}

/// Blocks the creation of objects that create cloud resources.
fn blocking_webhook() -> Result<ValidatingWebhookConfiguration, Error> {
    let object = json!({
        "metadata": { "name": "block-resources" },
        "webhooks": [{
            "name": "block-resources.hypershift.openshift.io",
            "admissionReviewVersions": ["v1"],
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "timeoutSeconds": 5,
            "clientConfig": { "service": { "namespace": "default", "name": "xxx-invalid-service-xxx" } },
            "rules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["persistentvolumeclaims", "persistentvolumes", "services"],
            }, {
                "apiGroups": ["policy"], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["poddisruptionbudgets"],
            }],
        }],
    });
    serde_json::from_value(object).map_err(|error| Error::Form {
        object: "ValidatingWebhookConfiguration block-resources".to_owned(),
        problem: error.to_string(),
    })
}

async fn load_balancers(ctx: &Context) -> Result<Vec<String>, Error> {
    let api: Api<Service> = Api::all(ctx.guest.clone());
    let list = api.list(&ListParams::default()).await;
    let list = list.map_err(Error::client("list Services of the hosted cluster"))?;
    let load_balancers = list.items.into_iter().filter(|service| {
        let spec = service.spec.as_ref();
        spec.and_then(|spec| spec.type_.as_deref()) == Some("LoadBalancer")
    });
    delete_all(ctx, load_balancers.collect::<Vec<_>>()).await
}

/// Deletes claims, and the pods that block their deletion.
async fn claims(ctx: &Context) -> Result<Vec<String>, Error> {
    let api: Api<PersistentVolumeClaim> = Api::all(ctx.guest.clone());
    let list = api.list(&ListParams::default()).await;
    let claims = list
        .map_err(Error::client(
            "list PersistentVolumeClaims of the hosted cluster",
        ))?
        .items;
    if claims.is_empty() {
        return Ok(Vec::new());
    }
    let remaining = delete_all(ctx, claims).await?;
    let pods: Api<Pod> = Api::all(ctx.guest.clone());
    let list = pods.list(&ListParams::default()).await;
    let pods = list
        .map_err(Error::client("list Pods of the hosted cluster"))?
        .items;
    delete_all(
        ctx,
        pods.into_iter().filter(uses_a_claim).collect::<Vec<_>>(),
    )
    .await?;
    Ok(remaining)
}

fn uses_a_claim(pod: &Pod) -> bool {
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_ref());
    let mut volumes = volumes.into_iter().flatten();
    volumes.any(|volume| volume.persistent_volume_claim.is_some())
}

/// Returns volumes that will be deleted with their claim.
async fn volumes(ctx: &Context) -> Result<Vec<String>, Error> {
    let api: Api<PersistentVolume> = Api::all(ctx.guest.clone());
    let list = api.list(&ListParams::default()).await;
    let list = list.map_err(Error::client(
        "list PersistentVolumes of the hosted cluster",
    ))?;
    let is_deleted_with_claim = |volume: &PersistentVolume| {
        let spec = volume.spec.as_ref();
        let policy = spec.and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref());
        policy != Some("Retain") && spec.is_some_and(|spec| spec.claim_ref.is_some())
    };
    Ok(list
        .items
        .iter()
        .filter(|volume| is_deleted_with_claim(volume))
        .map(object_name)
        .collect())
}

/// Deletes objects that are not being deleted yet, and returns the names of all.
async fn delete_all<K>(ctx: &Context, objects: Vec<K>) -> Result<Vec<String>, Error>
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned,
{
    for object in objects
        .iter()
        .filter(|it| it.meta().deletion_timestamp.is_none())
    {
        let namespace = object.namespace().unwrap_or_default();
        let api: Api<K> = Api::namespaced(ctx.guest.clone(), &namespace);
        match api
            .delete(&object.name_any(), &DeleteParams::default())
            .await
        {
            Ok(_) => {
                tracing::info!(kind = %K::kind(&()), object = object_name(object), "Deleted cloud resource")
            }
            Err(error) if is_missing(&error) => {}
            Err(error) => {
                let what = format!("delete {} {}", K::kind(&()), object_name(object));
                return Err(Error::client(what)(error));
            }
        }
    }
    Ok(objects.iter().map(object_name).collect())
}

fn object_name<K: kube::Resource>(object: &K) -> String {
    match object.namespace() {
        Some(namespace) => format!("{namespace}/{}", object.name_any()),
        None => object.name_any(),
    }
}

impl std::fmt::Display for Remaining {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = [
            ("load balancers", &self.load_balancers),
            ("claims", &self.claims),
            ("volumes", &self.volumes),
        ];
        let parts = parts.iter().filter(|(_, names)| !names.is_empty());
        let parts: Vec<_> = parts
            .map(|(what, names)| {
                let more = if names.len() > 3 { ", ..." } else { "" };
                let first = names.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
                format!("{} {what} ({first}{more})", names.len())
            })
            .collect();
        write!(f, "Waiting for deletion of {}", parts.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remaining_resources_are_reported_until_unreachable() {
        let remaining = |count: usize| {
            Ok(Remaining {
                load_balancers: (0..count).map(|index| format!("a/s-{index}")).collect(),
                ..Remaining::default()
            })
        };
        let unreachable = || Err(Error::waiting("an answer"));
        let minute = SignedDuration::from_mins(1);
        for (remaining, failures, waited, status, reason) in [
            (remaining(0), 0, minute, Status::True, "AsExpected"),
            (
                remaining(1),
                0,
                CLEANUP_TIMEOUT,
                Status::False,
                "RemainingCloudResources",
            ),
            (unreachable(), 1, minute, Status::False, "CleanupFailed"),
            (
                unreachable(),
                FAILURE_THRESHOLD,
                minute,
                Status::True,
                "CloudResourcesCleanupSkipped",
            ),
            (
                unreachable(),
                1,
                CLEANUP_TIMEOUT,
                Status::True,
                "CloudResourcesCleanupSkipped",
            ),
        ] {
            let desired = condition(&remaining, failures, waited);
            assert_eq!((desired.status, desired.reason), (status, reason));
        }
        let desired = condition(&remaining(5), 0, minute);
        assert_eq!(
            desired.message,
            "Waiting for deletion of 5 load balancers (a/s-0, a/s-1, a/s-2, ...)"
        );
    }

    #[test]
    fn new_load_balancers_are_blocked() {
        let webhooks = blocking_webhook().unwrap().webhooks.unwrap();
        assert_eq!(webhooks[0].failure_policy.as_deref(), Some("Fail"));
    }

    #[test]
    fn cleanup_requires_deletion_and_annotation() {
        for (deleted, annotation, expected) in [
            (true, "true", true),
            (true, "false", false),
            (false, "true", false),
        ] {
            let mut object = json!({ "metadata": { "name": "a", "annotations": {
                "hypershift.openshift.io/cleanup-cloud-resources": annotation,
            } } });
            if deleted {
                object["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z");
            }
            assert_eq!(
                is_requested(&serde_json::from_value(object).unwrap()),
                expected
            );
        }
    }
}
