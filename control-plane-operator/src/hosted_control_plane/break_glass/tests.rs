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
async fn ignored_revocations_are_reported_once() {
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

fn hcp(is_disabled: bool) -> Option<HostedControlPlane> {
    let key = "hypershift.openshift.io/disable-pki-reconciliation";
    let annotations = if is_disabled {
        json!({ key: "true" })
    } else {
        json!({})
    };
    serde_json::from_value(json!({
        "apiVersion": "hypershift.openshift.io/v1beta1", "kind": "HostedControlPlane",
        "metadata": { "name": "a", "annotations": annotations },
        "spec": {
            "releaseImage": "r", "pullSecret": { "name": "p" }, "platform": { "type": "None" }, "services": [],
            "issuerURL": "https://i", "infraID": "i", "etcd": { "managementType": "Managed" },
            "dns": { "baseDomain": "d" }, "sshKey": { "name": "" },
        },
    }))
    .ok()
}

fn controller<F>(scenario: &Scenario, found: DynamicObject, hcp: F) -> Controller<F> {
    let resource = ApiResource::erase::<Approval>(&());
    let mut writer = Writer::new(resource.clone());
    writer.apply_watcher_event(&watcher::Event::Apply(found));
    Controller {
        applier: Applier::new(scenario.client(), MANAGER),
        resource,
        found: writer.as_reader(),
        hcp,
        reported: Mutex::default(),
    }
}

/// A failed report is retried even if the request does not change.
#[tokio::test(start_paused = true)]
async fn a_failed_report_is_retried() {
    let (_, found) = object("CertificateSigningRequestApproval", &json!({}));
    let path = "/api/v1/namespaces/clusters-a/events/a.u";
    let written = Answer::ok(&json!({ "metadata": { "name": "a.u" } }));
    let scenario = Scenario::new([
        Expect::get(path).answer(Answer::error(500, "InternalError")),
        Expect::get(path).answer(Answer::error(404, "NotFound")),
        Expect::patch(path).answer(written),
    ]);
    let key = ObjectKey::of(&found.metadata);
    let controller = controller(&scenario, found, || hcp(true));
    let failed = controller.reconcile(&key).await.unwrap_err();
    assert_eq!(failed.retry(), Retry::Backoff);
    let action = controller.reconcile(&key).await.unwrap();
    assert_eq!(action, Action::requeue(RESYNC));
    scenario.finish();
}

/// Events expire after an hour: without a memory, there would be another one each hour.
#[tokio::test]
async fn approvals_are_reported_again_only_after_a_change() {
    let (_, found) = object("CertificateSigningRequestApproval", &json!({}));
    let path = "/api/v1/namespaces/clusters-a/events/a.u";
    let written = Answer::ok(&json!({ "metadata": { "name": "a.u" } }));
    let report = || {
        [
            Expect::get(path).answer(Answer::error(404, "NotFound")),
            Expect::patch(path).answer(written.clone()),
        ]
    };
    let scenario = Scenario::new(report().into_iter().chain(report()));
    let key = ObjectKey::of(&found.metadata);
    let is_disabled = std::cell::Cell::new(true);
    let controller = controller(&scenario, found, || hcp(is_disabled.get()));
    // The second report follows the time in which the operator ran.
    for disabled in [true, true, true, false, true, true] {
        is_disabled.set(disabled);
        let action = controller.reconcile(&key).await.unwrap();
        assert_eq!(action, Action::requeue(RESYNC));
    }
    scenario.finish();
}

/// control-plane-pki-operator acts on them.
#[tokio::test]
async fn requests_are_not_reported_while_the_operator_runs() {
    let (_, found) = object("CertificateSigningRequestApproval", &json!({}));
    let scenario = Scenario::new([]);
    let key = ObjectKey::of(&found.metadata);
    assert!(hcp(false).is_some());
    let controller = controller(&scenario, found, || hcp(false));
    assert_eq!(
        controller.reconcile(&key).await.unwrap(),
        Action::requeue(RESYNC)
    );
    scenario.finish();
}

#[tokio::test]
async fn approvals_get_an_idempotent_warning_event() {
    let resource = ApiResource::erase::<Approval>(&());
    let (_, found) = object("CertificateSigningRequestApproval", &json!({}));
    let path = "/api/v1/namespaces/clusters-a/events/a.u";
    let expected = json!({ "type": "Warning", "reason": REASON, "involvedObject": { "uid": "u" } });
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
