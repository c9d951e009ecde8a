use serde_json::json;
use support::testing::{Answer, Expect, Scenario};

use super::super::super::cache::testing::Contents;
use super::super::super::class::TOTAL_CLIENT_CA;
use super::super::super::fixtures::{bundle, context, secret, signer};
use super::super::super::objects::Kind;
use super::*;

const REQUEST: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests/alice";
const EVENTS: &str = "/api/v1/namespaces/clusters-a/events";
const NAME: &str = "system:customer-break-glass:alice";

fn approval() -> DynamicObject {
    serde_json::from_value(json!({
        "apiVersion": "certificates.hypershift.openshift.io/v1alpha1",
        "kind": "CertificateSigningRequestApproval",
        "metadata": {
            "name": "alice", "namespace": "clusters-a", "uid": "u",
            "creationTimestamp": (now() - Duration::from_mins(1)).to_string(),
        },
    }))
    .unwrap()
}

/// A request of a user with this name.
fn request(signer: &str, name: &str) -> Value {
    let mut params = rcgen::CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params
        .distinguished_name
        .push(rcgen::DnType::CommonName, name);
    let key = rcgen::KeyPair::generate().unwrap();
    let pem = params.serialize_request(&key).unwrap().pem().unwrap();
    json!({
        "metadata": { "name": "alice", "uid": "csr", "resourceVersion": "9", "creationTimestamp": now().to_string() },
        "spec": {
            "request": ByteString(pem.into_bytes()),
            "signerName": signer,
            "usages": ["client auth"],
        },
    })
}

fn own(name: &str) -> Value {
    request(
        "hypershift.openshift.io/clusters-a.customer-break-glass",
        name,
    )
}

fn with_condition(mut request: Value, type_: &str) -> Value {
    request["status"] = json!({ "conditions": [{ "type": type_, "status": "True" }] });
    request
}

/// A controller with the approval; a signer is in the cache, and is trusted if asked for.
fn controller(scenario: &Scenario, is_trusted: bool) -> Controller {
    let pair = signer(now());
    let total = if is_trusted {
        vec![pair.certificate.clone()]
    } else {
        Vec::new()
    };
    let contents = Contents {
        secrets: vec![secret(Kind::Signer, &pair)],
        total: Some(bundle(TOTAL_CLIENT_CA, &total)),
        approvals: vec![approval()],
        ..Contents::default()
    };
    Controller::new(context(scenario, contents))
}

/// Reconciles the approval.
async fn reconciled(calls: impl IntoIterator<Item = Expect>, is_trusted: bool) -> Action {
    let scenario = Scenario::new(calls);
    let controller = controller(&scenario, is_trusted);
    let key = ObjectKey::new("clusters-a", "alice");
    let action = controller.reconcile(&key).await.unwrap();
    scenario.finish();
    action
}

fn event(reason: &str) -> Expect {
    let involved =
        json!({ "kind": "CertificateSigningRequestApproval", "name": "alice", "uid": "u" });
    Expect::post(EVENTS).body(json!({ "reason": reason, "involvedObject": involved }))
}

#[tokio::test]
async fn approved_requests_are_signed() {
    let pending = own(NAME);
    let approved = with_condition(pending.clone(), "Approved");
    let mut signed = approved.clone();
    signed["status"]["certificate"] = json!(ByteString(b"x".to_vec()));
    let condition = json!({ "type": "Approved", "status": "True", "reason": "ApprovalPresent" });
    let action = reconciled(
        [
            Expect::get(REQUEST).answer(Answer::ok(&pending)),
            Expect::put(&format!("{REQUEST}/approval"))
                .body(json!({ "metadata": { "resourceVersion": "9" }, "status": { "conditions": [condition] } }))
                .answer(Answer::ok(&approved)),
            event("CertificateSigningRequestApproved"),
            Expect::patch(&format!("{REQUEST}/status?fieldManager=customer-break-glass-certificate-signing-controller"))
                .body(json!({ "metadata": { "resourceVersion": "9", "uid": "csr" } }))
                .answer(Answer::ok(&signed)),
            event("CertificateSigningRequestFulfilled"),
        ],
        true,
    )
    .await;
    assert_eq!(action, Action::await_change());
}

/// T15: requests of another hosted cluster are neither approved nor signed, whatever has an approval here.
#[tokio::test]
async fn requests_for_signers_of_another_namespace_are_not_touched() {
    for signer in [
        "hypershift.openshift.io/clusters-b.customer-break-glass",
        "hypershift.openshift.io/clusters-b.sre-break-glass",
        "kubernetes.io/kube-apiserver-client",
    ] {
        for request in [
            request(signer, NAME),
            with_condition(request(signer, NAME), "Approved"),
        ] {
            let calls = [Expect::get(REQUEST).answer(Answer::ok(&request))];
            assert_eq!(reconciled(calls, true).await, Action::await_change());
        }
    }
}

#[tokio::test]
async fn invalid_requests_fail_with_the_reason() {
    let approved = with_condition(own("system:admin"), "Approved");
    let failed = with_condition(approved.clone(), "Failed");
    let condition =
        json!({ "type": "Failed", "status": "True", "reason": "SignerValidationFailure" });
    reconciled(
        [
            Expect::get(REQUEST).answer(Answer::ok(&approved)),
            Expect::patch(&format!("{REQUEST}/status"))
                .body(json!({ "status": { "conditions": [condition] } }))
                .answer(Answer::ok(&failed)),
            event("CertificateSigningRequestInvalid"),
        ],
        true,
    )
    .await;
}

#[tokio::test]
async fn nothing_is_signed_before_its_signer_is_trusted() {
    let approved = with_condition(own(NAME), "Approved");
    let calls = [Expect::get(REQUEST).answer(Answer::ok(&approved))];
    assert_eq!(reconciled(calls, false).await, Action::requeue(UNTRUSTED));
}

#[tokio::test]
async fn absent_requests_are_looked_for_for_a_day() {
    let calls = [Expect::get(REQUEST).answer(Answer::error(404, "NotFound"))];
    assert_eq!(
        reconciled(calls, true).await,
        Action::requeue(Duration::from_secs(6))
    );
    let day = Duration::from_hours(24);
    for (age, expected) in [
        (Duration::ZERO, Some(POLL.0)),
        (Duration::from_mins(5), Some(Duration::from_secs(30))),
        (day, Some(POLL.1)),
        (day + Duration::from_secs(1), None),
    ] {
        let found = poll(Some(now()), now() + age);
        assert_eq!(found, expected.map(Action::requeue), "{age:?}");
    }
    // The clock of the API server may be ahead.
    let ahead = poll(Some(now() + Duration::from_mins(1)), now());
    assert_eq!(ahead, Some(Action::requeue(POLL.0)));
    assert_eq!(poll(None, now()), None);
}

/// All approvals are requested after each change of the cache.
#[tokio::test]
async fn finished_requests_are_read_once() {
    let pending = own(NAME);
    let approved = with_condition(pending.clone(), "Approved");
    let key = ObjectKey::new("clusters-a", "alice");
    for finished in [
        with_condition(pending.clone(), "Denied"),
        with_condition(approved.clone(), "Failed"),
        request("kubernetes.io/kube-apiserver-client", NAME),
    ] {
        let scenario = Scenario::new([Expect::get(REQUEST).answer(Answer::ok(&finished))]);
        let controller = controller(&scenario, true);
        for _ in 0..2 {
            let action = controller.reconcile(&key).await.unwrap();
            assert_eq!(action, Action::await_change());
        }
        scenario.finish();
    }
}

#[tokio::test]
async fn requests_are_read_until_they_are_finished() {
    let approved = with_condition(own(NAME), "Approved");
    let denied = with_condition(own(NAME), "Denied");
    let key = ObjectKey::new("clusters-a", "alice");
    let scenario = Scenario::new([
        Expect::get(REQUEST).answer(Answer::ok(&approved)),
        Expect::get(REQUEST).answer(Answer::ok(&denied)),
    ]);
    let controller = controller(&scenario, false);
    for expected in [
        Action::requeue(UNTRUSTED),
        Action::await_change(),
        Action::await_change(),
    ] {
        assert_eq!(controller.reconcile(&key).await.unwrap(), expected);
    }
    scenario.finish();
}

/// An approval that is created again is another one.
#[tokio::test]
async fn another_approval_of_the_same_name_is_followed() {
    let scenario = Scenario::new([]);
    let controller = controller(&scenario, true);
    let first = approval();
    controller.finish(&first);
    let mut second = approval();
    second.metadata.uid = Some("v".to_owned());
    assert!(controller.is_finished(&first));
    assert!(!controller.is_finished(&second));
}
