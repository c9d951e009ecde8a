//! Break-glass credential requests. They are not implemented yet, and each request reports that.
//!
//! A CertificateRevocationRequest gets a condition. A CertificateSigningRequestApproval has no conditions, so it gets a
//! Warning Event. Each is written once, and again only after a change.

use std::time::Duration;

use api::certificates::v1alpha1::{
    CertificateRevocationRequest, CertificateSigningRequestApproval as Approval,
};
use api::hypershift::v1beta1::certificate_signing_request_approval::CertificateSigningRequestApproval as OldApproval;
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
const REASON: &str = "NotImplemented";
/// Condition of the last step of a revocation, which users wait for.
const REVOKED: &str = "PreviousCertificatesRevoked";
const NOT_REVOKED: &str = "Certificate revocation is not implemented: this request is ignored, and all \
    certificates stay valid. To revoke access, remove the RBAC bindings of the user in the hosted cluster.";
const NOT_APPROVED: &str = "Signing of break-glass certificates is not implemented: this approval is ignored. Use the \
                            kubeconfig that HostedCluster.status.kubeconfig names.";

/// Reporting on a request failed.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
struct Failed(#[from] Error);

/// Reports on the requests of one kind.
struct Controller {
    applier: Applier,
    resource: ApiResource,
    found: Store<DynamicObject>,
}

/// Reports on the requests of a namespace until shutdown.
pub(super) async fn run(client: &kube::Client, namespace: &str, manager: &Manager, drain: Drain) {
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
        (
            "certificatesigningrequestapproval-old",
            approval,
            ApiResource::erase::<OldApproval>(&()),
        ),
    ];
    let controllers = kinds.map(|kind| control(client, namespace, kind, manager, &drain));
    join_all(controllers).await;
}

async fn control(
    client: &kube::Client,
    namespace: &str,
    (controller, kind, resource): (&'static str, &'static str, ApiResource),
    manager: &Manager,
    drain: &Drain,
) {
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

impl Reconciler for Controller {
    type Error = Failed;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, Failed> {
        let found = self.found.find(|found| found.name_any() == key.name);
        if let Some(found) = found {
            record_generation(found.metadata.generation);
            report(&self.applier, &self.resource, &found).await?;
        }
        Ok(Action::await_change())
    }
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
mod tests {
    use support::testing::{Answer, Expect, Scenario};

    use super::*;

    const GROUP: &str = "/apis/certificates.hypershift.openshift.io/v1alpha1/namespaces/clusters-a";

    fn object(kind: &str, status: &Value) -> (Value, DynamicObject) {
        let value = json!({
            "apiVersion": "certificates.hypershift.openshift.io/v1alpha1", "kind": kind,
            "metadata": {
                "name": "a", "namespace": "clusters-a", "uid": "u", "generation": 1,
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "status": status,
        });
        (value.clone(), serde_json::from_value(value).unwrap())
    }

    /// Finding T15: a revocation was accepted, and silently ignored.
    #[tokio::test]
    async fn revocations_are_reported_as_not_implemented_once() {
        let resource = ApiResource::erase::<CertificateRevocationRequest>(&());
        let (value, found) = object("CertificateRevocationRequest", &json!({}));
        let path = format!("{GROUP}/certificaterevocationrequests/a");
        let expected = json!({ "status": { "conditions": [{
            "type": REVOKED, "status": "False", "reason": REASON, "message": NOT_REVOKED, "observedGeneration": 1,
        }] } });
        let scenario = Scenario::new([
            Expect::get(&path).answer(Answer::ok(&value)),
            Expect::patch(&format!("{path}/status"))
                .body(expected.clone())
                .answer(Answer::ok(&value)),
        ]);
        let applier = Applier::new(scenario.client(), MANAGER);
        report(&applier, &resource, &found).await.unwrap();
        let (_, reported) = object("CertificateRevocationRequest", &expected["status"]);
        report(&applier, &resource, &reported).await.unwrap();
        scenario.finish();
    }

    /// A failed report is retried even if the request does not change.
    #[tokio::test(start_paused = true)]
    async fn a_failed_report_is_retried() {
        let resource = ApiResource::erase::<Approval>(&());
        let (_, found) = object("CertificateSigningRequestApproval", &json!({}));
        let path = "/api/v1/namespaces/clusters-a/events/a.u";
        let written = Answer::ok(&json!({ "metadata": { "name": "a.u" } }));
        let scenario = Scenario::new([
            Expect::get(path).answer(Answer::error(500, "InternalError")),
            Expect::get(path).answer(Answer::error(404, "NotFound")),
            Expect::patch(path).answer(written),
        ]);
        let mut writer = Writer::new(resource.clone());
        writer.apply_watcher_event(&watcher::Event::Apply(found.clone()));
        let controller = Controller {
            applier: Applier::new(scenario.client(), MANAGER),
            resource,
            found: writer.as_reader(),
        };
        let key = ObjectKey::of(&found.metadata);
        let failed = controller.reconcile(&key).await.unwrap_err();
        assert_eq!(failed.retry(), Retry::Backoff);
        let action = controller.reconcile(&key).await.unwrap();
        assert_eq!(action, Action::await_change());
        scenario.finish();
    }

    #[tokio::test]
    async fn approvals_get_an_idempotent_warning_event() {
        let resource = ApiResource::erase::<Approval>(&());
        let (_, found) = object("CertificateSigningRequestApproval", &json!({}));
        let path = "/api/v1/namespaces/clusters-a/events/a.u";
        let expected =
            json!({ "type": "Warning", "reason": REASON, "involvedObject": { "uid": "u" } });
        let scenario = Scenario::new([
            Expect::get(path).answer(Answer::error(404, "NotFound")),
            Expect::patch(path)
                .body(expected)
                .answer(Answer::ok(&json!({ "metadata": { "name": "a.u" } }))),
        ]);
        let applier = Applier::new(scenario.client(), MANAGER);
        report(&applier, &resource, &found).await.unwrap();
        scenario.finish();
        assert_eq!(event(&resource, &found), event(&resource, &found));
    }
}
