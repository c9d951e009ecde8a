//! Reports break-glass requests that are ignored, because PKI reconciliation is disabled and so
//! control-plane-pki-operator does not run.
//!
//! A CertificateRevocationRequest gets a condition. A CertificateSigningRequestApproval has no conditions, so it gets a
//! Warning Event. Each is written once, and again only after a change.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::annotations::cluster::DISABLE_PKI_RECONCILIATION;
use api::certificates::v1alpha1::{
    CertificateRevocationRequest, CertificateSigningRequestApproval as Approval,
};
use api::hypershift::v1beta1::HostedControlPlane;
use futures::StreamExt as _;
use futures::future::join_all;
use jiff::Timestamp;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::reflector::Store;
use kube::runtime::reflector::store::Writer;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use support::apply::{Applier, Error};
use support::controller::{
    Action, DEADLINE, Manager, ObjectKey, Reconciler, Settings, record_generation,
};
use support::reconcile::{Backoff, Report, Retry};
use support::shutdown::Drain;

const MANAGER: &str = "control-plane-operator-break-glass";
const REVOCATION: &str = "CertificateRevocationRequest";
const REASON: &str = "PKIReconciliationDisabled";
/// Condition of the last step of a revocation, which users wait for.
const REVOKED: &str = "PreviousCertificatesRevoked";
const NOT_REVOKED: &str = "This request is ignored, and all certificates stay valid: annotation \
    hypershift.openshift.io/disable-pki-reconciliation is set, so you provide the signers of this hosted cluster. Remove \
    the authority of the certificates from ConfigMap total-client-ca.";
const NOT_APPROVED: &str = "This approval is ignored: annotation \
    hypershift.openshift.io/disable-pki-reconciliation is set, so you provide the signers of this hosted cluster.";
/// When the annotation is looked at again.
const RESYNC: Duration = Duration::from_mins(1);

/// Reporting on a request failed.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
struct Failed(#[from] Error);

/// Reports on the requests of one kind.
struct Controller<F> {
    applier: Applier,
    resource: ApiResource,
    found: Store<DynamicObject>,
    hcp: F,
    /// Names and UIDs of reported approvals: their Events expire, and would be created again.
    reported: Mutex<BTreeMap<String, String>>,
}

/// Reports on the requests of a namespace until shutdown.
pub(super) async fn run<F>(
    client: &kube::Client,
    namespace: &str,
    hcp: F,
    manager: &Manager,
    drain: Drain,
) where
    F: Fn() -> Option<HostedControlPlane> + Copy,
{
    let approval = "CertificateSigningRequestApproval";
    let kinds = [
        (
            "certificaterevocationrequest",
            REVOCATION,
            ApiResource::erase::<CertificateRevocationRequest>(&()),
        ),
        (
            "certificatesigningrequestapproval",
            approval,
            ApiResource::erase::<Approval>(&()),
        ),
    ];
    let controllers = kinds.map(|kind| control((client, namespace), kind, hcp, manager, &drain));
    join_all(controllers).await;
}

async fn control<F>(
    (client, namespace): (&kube::Client, &str),
    (controller, kind, resource): (&'static str, &'static str, ApiResource),
    hcp: F,
    manager: &Manager,
    drain: &Drain,
) where
    F: Fn() -> Option<HostedControlPlane>,
{
    let settings = Settings {
        controller,
        kind,
        concurrency: 1,
        debounce: Duration::ZERO,
        deadline: DEADLINE,
    };
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
    let writer = Writer::new(resource.clone());
    let controller = Controller {
        applier: Applier::new(client.clone(), MANAGER),
        found: writer.as_reader(),
        resource,
        hcp,
        reported: Mutex::default(),
    };
    let requests = watcher(api, watcher::Config::default())
        .backoff(Backoff::default())
        .reflect(writer)
        .applied_objects()
        // If the kind is not served, there are no requests.
        .filter_map(async |found| Some(ObjectKey::of(&found.ok()?.metadata)));
    let ready = std::future::ready(());
    manager
        .run(settings, &controller, requests, ready, drain.clone())
        .await;
}

// === impl Controller ===

impl<F> Controller<F> {
    /// Reports on a request, unless that is already done.
    async fn report(&self, found: &DynamicObject) -> Result<(), Failed> {
        let (name, uid) = (found.name_any(), found.uid().unwrap_or_default());
        if self.reported().get(&name) == Some(&uid) {
            return Ok(());
        }
        report(&self.applier, &self.resource, found).await?;
        // The status of a revocation is its own memory, and may be overwritten.
        if self.resource.kind != REVOCATION {
            self.reported().insert(name, uid);
        }
        Ok(())
    }

    fn reported(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F: Fn() -> Option<HostedControlPlane>> Reconciler for Controller<F> {
    type Error = Failed;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, Failed> {
        let found = self.found.find(|found| found.name_any() == key.name);
        let Some(found) = found else {
            self.reported().remove(&key.name);
            return Ok(Action::await_change());
        };
        record_generation(found.metadata.generation);
        if (self.hcp)().is_some_and(|hcp| is_disabled(&hcp)) {
            self.report(&found).await?;
        } else {
            self.reported().remove(&key.name);
        }
        Ok(Action::requeue(RESYNC))
    }
}

/// Whether control-plane-pki-operator does not run.
fn is_disabled(hcp: &HostedControlPlane) -> bool {
    let annotations = hcp.metadata.annotations.as_ref();
    annotations.is_some_and(|annotations| DISABLE_PKI_RECONCILIATION.is_set(annotations))
}

impl Report for Failed {
    fn reason(&self) -> &'static str {
        self.0.reason()
    }

    fn retry(&self) -> Retry {
        self.0.retry()
    }
}

/// Reports that a request is ignored, unless that is already reported.
async fn report(
    applier: &Applier,
    resource: &ApiResource,
    found: &DynamicObject,
) -> Result<(), Error> {
    if found.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    if resource.kind == REVOCATION {
        let Some(status) = status(found, Timestamp::now()) else {
            return Ok(());
        };
        return applier.apply_status(resource, status).await.map(drop);
    }
    let events = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Event"));
    applier
        .apply_value(&events, event(resource, found))
        .await
        .map(drop)
}

/// Returns the status of an ignored revocation, unless it is already set.
fn status(found: &DynamicObject, now: Timestamp) -> Option<Value> {
    let conditions = found.data["status"]["conditions"].as_array();
    let is_reported = conditions.into_iter().flatten().any(|condition| {
        condition["type"] == REVOKED
            && condition["reason"] == REASON
            && condition["message"] == NOT_REVOKED
            && condition["observedGeneration"] == json!(found.metadata.generation)
    });
    (!is_reported).then(|| {
        json!({
            "metadata": { "name": found.metadata.name, "namespace": found.metadata.namespace },
            "status": { "conditions": [{
                "type": REVOKED,
                "status": "False",
                "reason": REASON,
                "message": NOT_REVOKED,
                "observedGeneration": found.metadata.generation,
                "lastTransitionTime": now,
            }] },
        })
    })
}

/// The Event of an approval. Its name and times are derived from the approval, so that writing it is idempotent.
fn event(resource: &ApiResource, found: &DynamicObject) -> Value {
    let uid = found.uid().unwrap_or_default();
    let created = &found.metadata.creation_timestamp;
    json!({
        "metadata": { "name": format!("{}.{uid}", found.name_any()), "namespace": found.metadata.namespace },
        "involvedObject": {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "name": found.metadata.name,
            "namespace": found.metadata.namespace,
            "uid": uid,
        },
        "type": "Warning",
        "reason": REASON,
        "message": NOT_APPROVED,
        "source": { "component": "control-plane-operator" },
        "firstTimestamp": created,
        "lastTimestamp": created,
        "count": 1,
    })
}

#[cfg(test)]
mod tests;
