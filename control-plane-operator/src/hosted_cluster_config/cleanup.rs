//! Before a hosted cluster is deleted: load balancers and volumes that it has made in its cloud.
//!
//! They could not be found once its API server is gone. New ones are refused meanwhile, by a webhook whose Service does
//! not exist, so that the API server has no way to let them pass.

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
use super::control_plane::{self, Wanted};
use super::error::Error;

/// How often it is looked at what is left.
pub(super) const PERIOD: Duration = Duration::from_secs(5);
/// A cluster that does not answer so often in a row has nothing that could be cleaned up.
const FAILURES: u32 = 5;
/// Nor has one that does not answer for so long after its deletion.
const LONGEST: SignedDuration = SignedDuration::from_mins(5);

/// What is left in the hosted cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Left {
    balancers: Vec<String>,
    claims: Vec<String>,
    volumes: Vec<String>,
}

/// Failures in a row. There is one hosted cluster for each process.
static FAILED: Mutex<u32> = Mutex::new(0);

/// Cleans up, if the cluster is being deleted and says that it wants this.
pub(super) async fn pass(ctx: &Context) -> Result<(), Error> {
    let Some(object) = ctx.control_plane().await?.filter(|it| is_wanted(it)) else {
        return Ok(());
    };
    let left = clean(ctx).await;
    let failures = count(left.is_err());
    let deleted = object
        .metadata
        .deletion_timestamp
        .as_ref()
        .map(|time| time.0);
    let since = deleted.map_or(SignedDuration::ZERO, |time| {
        Timestamp::now().duration_since(time)
    });
    let wanted = verdict(&left, failures, since);
    let generation = object.metadata.generation;
    control_plane::write(&ctx.control_planes(), &object, |status| {
        control_plane::set(
            status,
            std::slice::from_ref(&wanted),
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

fn is_wanted(object: &DynamicObject) -> bool {
    let wanted = CLEANUP_CLOUD_RESOURCES.get(object.annotations());
    object.metadata.deletion_timestamp.is_some() && matches!(wanted, Ok(Some(true)))
}

fn verdict(left: &Result<Left, Error>, failures: u32, waited: SignedDuration) -> Wanted {
    let (status, reason, message) = match left {
        Ok(left) if *left == Left::default() => (
            Status::True,
            "AsExpected",
            "Nothing is left of load balancers and volumes".to_owned(),
        ),
        Ok(left) => (Status::False, "RemainingCloudResources", left.to_string()),
        Err(error) if failures >= FAILURES || waited >= LONGEST => (
            Status::True,
            "CloudResourcesCleanupSkipped",
            format!(
                "the hosted cluster does not answer: look for what it has made in the cloud yourself ({})",
                chain(error)
            ),
        ),
        Err(error) => (Status::False, "CleanupFailed", chain(error)),
    };
    Wanted {
        about: ClusterCondition::CloudResourcesDestroyed,
        status,
        reason,
        message,
    }
}

/// Deletes, and says what is not gone yet.
async fn clean(ctx: &Context) -> Result<Left, Error> {
    ctx.applier.apply(&barrier()?).await?;
    Ok(Left {
        balancers: balancers(ctx).await?,
        claims: claims(ctx).await?,
        volumes: volumes(ctx).await?,
    })
}

/// Refuses what would make something in the cloud.
fn barrier() -> Result<ValidatingWebhookConfiguration, Error> {
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
        object: "the webhook that keeps new load balancers away".to_owned(),
        problem: error.to_string(),
    })
}

async fn balancers(ctx: &Context) -> Result<Vec<String>, Error> {
    let api: Api<Service> = Api::all(ctx.guest.clone());
    let list = api.list(&ListParams::default()).await;
    let list = list.map_err(Error::client("list Services of the hosted cluster"))?;
    let balancers = list.items.into_iter().filter(|service| {
        let spec = service.spec.as_ref();
        spec.and_then(|spec| spec.type_.as_deref()) == Some("LoadBalancer")
    });
    delete_all(ctx, balancers.collect::<Vec<_>>()).await
}

/// Claims go once no pod uses them.
async fn claims(ctx: &Context) -> Result<Vec<String>, Error> {
    let api: Api<PersistentVolumeClaim> = Api::all(ctx.guest.clone());
    let list = api.list(&ListParams::default()).await;
    let claims = list
        .map_err(Error::client("list claims of the hosted cluster"))?
        .items;
    if claims.is_empty() {
        return Ok(Vec::new());
    }
    let left = delete_all(ctx, claims).await?;
    let pods: Api<Pod> = Api::all(ctx.guest.clone());
    let list = pods.list(&ListParams::default()).await;
    let pods = list
        .map_err(Error::client("list pods of the hosted cluster"))?
        .items;
    delete_all(
        ctx,
        pods.into_iter().filter(uses_a_claim).collect::<Vec<_>>(),
    )
    .await?;
    Ok(left)
}

fn uses_a_claim(pod: &Pod) -> bool {
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_ref());
    let mut volumes = volumes.into_iter().flatten();
    volumes.any(|volume| volume.persistent_volume_claim.is_some())
}

/// Those that go with their claim.
async fn volumes(ctx: &Context) -> Result<Vec<String>, Error> {
    let api: Api<PersistentVolume> = Api::all(ctx.guest.clone());
    let list = api.list(&ListParams::default()).await;
    let list = list.map_err(Error::client("list volumes of the hosted cluster"))?;
    let goes = |volume: &PersistentVolume| {
        let spec = volume.spec.as_ref();
        let policy = spec.and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref());
        policy != Some("Retain") && spec.is_some_and(|spec| spec.claim_ref.is_some())
    };
    Ok(list
        .items
        .iter()
        .filter(|volume| goes(volume))
        .map(place)
        .collect())
}

/// Deletes those that are not being deleted, and names all that are left.
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
                tracing::info!(kind = %K::kind(&()), object = place(object), "Deleted before its cluster")
            }
            Err(error) if is_missing(&error) => {}
            Err(error) => {
                let what = format!("delete {} {}", K::kind(&()), place(object));
                return Err(Error::client(what)(error));
            }
        }
    }
    Ok(objects.iter().map(place).collect())
}

fn place<K: kube::Resource>(object: &K) -> String {
    match object.namespace() {
        Some(namespace) => format!("{namespace}/{}", object.name_any()),
        None => object.name_any(),
    }
}

impl std::fmt::Display for Left {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = [
            ("load balancers", &self.balancers),
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
        write!(f, "not gone yet: {}", parts.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_named_and_a_dead_cluster_given_up() {
        let left = |count: usize| {
            Ok(Left {
                balancers: (0..count).map(|index| format!("a/s-{index}")).collect(),
                ..Left::default()
            })
        };
        let dead = || Err(Error::waiting("an answer"));
        let minute = SignedDuration::from_mins(1);
        for (left, failures, waited, status, reason) in [
            (left(0), 0, minute, Status::True, "AsExpected"),
            (
                left(1),
                0,
                LONGEST,
                Status::False,
                "RemainingCloudResources",
            ),
            (dead(), 1, minute, Status::False, "CleanupFailed"),
            (
                dead(),
                FAILURES,
                minute,
                Status::True,
                "CloudResourcesCleanupSkipped",
            ),
            (
                dead(),
                1,
                LONGEST,
                Status::True,
                "CloudResourcesCleanupSkipped",
            ),
        ] {
            let wanted = verdict(&left, failures, waited);
            assert_eq!((wanted.status, wanted.reason), (status, reason));
        }
        let wanted = verdict(&left(5), 0, minute);
        assert_eq!(
            wanted.message,
            "not gone yet: 5 load balancers (a/s-0, a/s-1, a/s-2, ...)"
        );
    }

    #[test]
    fn new_load_balancers_have_no_way_in() {
        let webhooks = barrier().unwrap().webhooks.unwrap();
        assert_eq!(webhooks[0].failure_policy.as_deref(), Some("Fail"));
    }

    #[test]
    fn a_cluster_is_cleaned_when_it_goes_and_says_so() {
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
                is_wanted(&serde_json::from_value(object).unwrap()),
                expected
            );
        }
    }
}
