//! Requests for break-glass credentials: nothing here acts on them yet, and each of them says so.
//!
//! A CertificateRevocationRequest gets a condition. A CertificateSigningRequestApproval has no conditions: it gets a
//! Warning Event. Each is written once, and again only when somebody has changed it.

use api::certificates::v1alpha1::{
    CertificateRevocationRequest, CertificateSigningRequestApproval as Approval,
};
use api::hypershift::v1beta1::certificate_signing_request_approval::CertificateSigningRequestApproval as OldApproval;
use futures::StreamExt as _;
use futures::future::join3;
use jiff::Timestamp;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use support::apply::{Applier, Error};
use support::error::chain;
use support::reconcile::Backoff;

const MANAGER: &str = "control-plane-operator-break-glass";
const REASON: &str = "NotImplemented";
/// The last step of a revocation, which is what its user waits for.
const REVOKED: &str = "PreviousCertificatesRevoked";
const NOT_REVOKED: &str = "This version does not revoke certificates: nothing acts on this request, and all certificates \
                           stay valid. To revoke access, remove the RBAC bindings of the user in the hosted cluster.";
const NOT_APPROVED: &str = "This version does not sign break-glass certificates: nothing acts on this approval. Use the \
                            kubeconfig that HostedCluster.status.kubeconfig names.";

/// Watches the requests of a namespace, for ever.
pub(super) async fn run(client: &kube::Client, namespace: &str) {
    let revocation = ApiResource::erase::<CertificateRevocationRequest>(&());
    let approval = ApiResource::erase::<Approval>(&());
    let old = ApiResource::erase::<OldApproval>(&());
    join3(
        watch(client, namespace, &revocation),
        watch(client, namespace, &approval),
        watch(client, namespace, &old),
    )
    .await;
}

async fn watch(client: &kube::Client, namespace: &str, resource: &ApiResource) {
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, resource);
    let applier = Applier::new(client.clone(), MANAGER);
    let objects = watcher(api, watcher::Config::default())
        .backoff(Backoff::default())
        .applied_objects();
    let mut objects = std::pin::pin!(objects);
    while let Some(found) = objects.next().await {
        // Where the kind is not served, there are no requests.
        let Ok(found) = found else { continue };
        if let Err(error) = report(&applier, resource, &found).await {
            tracing::warn!(
                kind = resource.kind,
                name = found.name_any(),
                error = chain(&error),
                "Failed to report that nothing acts on the request"
            );
        }
    }
}

/// Says that nothing acts on a request, unless it says so already.
async fn report(
    applier: &Applier,
    resource: &ApiResource,
    found: &DynamicObject,
) -> Result<(), Error> {
    if found.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    if resource.kind == "CertificateRevocationRequest" {
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

/// The status of a revocation that nothing acts on; none if that is its status.
fn status(found: &DynamicObject, now: Timestamp) -> Option<Value> {
    let conditions = found.data["status"]["conditions"].as_array();
    let is_said = conditions.into_iter().flatten().any(|condition| {
        condition["type"] == REVOKED
            && condition["reason"] == REASON
            && condition["message"] == NOT_REVOKED
            && condition["observedGeneration"] == json!(found.metadata.generation)
    });
    (!is_said).then(|| {
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

/// The Event of an approval. Its name and its times are those of the approval: written twice, it is the same.
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

    /// Finding T15: a revocation was accepted, and nothing said that it was ignored.
    #[tokio::test]
    async fn a_revocation_says_once_that_nothing_acts_on_it() {
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
        let (_, said) = object("CertificateRevocationRequest", &expected["status"]);
        report(&applier, &resource, &said).await.unwrap();
        scenario.finish();
    }

    #[tokio::test]
    async fn an_approval_gets_a_warning_event_that_is_the_same_each_time() {
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
