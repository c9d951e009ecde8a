use serde_json::{Value, json};
use support::reconcile::{Report as _, Retry};
use support::testing::{Answer, Expect, Scenario};

use super::super::super::cache::testing::Contents;
use super::super::super::class::TOTAL_CLIENT_CA;
use super::super::super::fixtures::{bundle, client, context, secret, signer};
use super::super::super::objects::Kind;
use super::super::super::revocation::{LEAVES, REVOKED, ROOTS, TRUSTED};
use super::*;

const REQUEST: &str = "/apis/certificates.hypershift.openshift.io/v1alpha1/namespaces/clusters-a/certificaterevocationrequests/r";
const NAMESPACE: &str = "/api/v1/namespaces/clusters-a";
const HOUR: Duration = Duration::from_hours(1);

/// A request of half an hour ago with these conditions.
fn request(conditions: &[(&str, &str)]) -> DynamicObject {
    let since = (now() - HOUR / 2).to_string();
    let conditions = conditions.iter().map(|(type_, status)| {
        json!({ "type": type_, "status": status, "reason": "x", "message": "", "lastTransitionTime": since })
    });
    let conditions: Vec<_> = conditions.collect();
    let mut object = json!({
        "apiVersion": "certificates.hypershift.openshift.io/v1alpha1",
        "kind": "CertificateRevocationRequest",
        "metadata": { "name": "r", "namespace": "clusters-a", "uid": "u", "resourceVersion": "9", "generation": 1 },
        "spec": { "signerClass": "customer-break-glass" },
    });
    if !conditions.is_empty() {
        let previous = json!({ "name": saved_name("r") });
        object["status"] = json!({ "revocationTimestamp": since, "previousSigner": previous, "conditions": conditions });
    }
    serde_json::from_value(object).unwrap()
}

/// An old signer of an hour ago, and a new one.
fn signers() -> [Pair; 2] {
    [signer(now() - HOUR), signer(now() - HOUR / 4)]
}

fn contents(
    request: DynamicObject,
    current: &Pair,
    trusted: &[Certificate],
    client: &Pair,
) -> Contents {
    Contents {
        secrets: vec![secret(Kind::Signer, current), secret(Kind::Client, client)],
        bundles: vec![bundle(&Class::Customer.bundle(), trusted)],
        total: Some(bundle(TOTAL_CLIENT_CA, trusted)),
        revocations: vec![request],
        ..Contents::default()
    }
}

fn saved(pair: &Pair) -> Answer {
    let owner = OwnerReference {
        uid: "u".to_owned(),
        ..OwnerReference::default()
    };
    let secret = objects::saved_secret(&saved_name("r"), pair, owner);
    Answer::ok(&serde_json::to_value(secret).unwrap())
}

fn saved_path() -> String {
    format!("{NAMESPACE}/secrets/{}", saved_name("r"))
}

async fn reconciled(calls: Vec<Expect>, contents: Contents) -> Result<Action, Error> {
    let scenario = Scenario::new(calls);
    let controller = Controller(context(&scenario, contents));
    let action = controller
        .reconcile(&ObjectKey::new("clusters-a", "r"))
        .await;
    scenario.finish();
    action
}

/// A status patch that has these conditions, last.
#[expect(clippy::needless_pass_by_value, reason = "calls are shorter")]
fn patched(expected: Value) -> Expect {
    Expect::patch(&format!("{REQUEST}/status"))
        .body(json!({ "metadata": { "resourceVersion": "9" }, "status": expected }))
}

fn event(reason: &str) -> Expect {
    Expect::post(&format!("{NAMESPACE}/events")).body(json!({ "reason": reason }))
}

/// T15: a revocation was accepted, and silently ignored.
#[tokio::test]
async fn a_new_request_gets_its_timestamp_and_an_event() {
    let [old, _] = signers();
    let leaf = client(&old, now());
    let contents = contents(
        request(&[]),
        &old,
        std::slice::from_ref(&old.certificate),
        &leaf,
    );
    let condition = json!({ "type": "SignerClassValid", "status": "True", "reason": "AsExpected", "observedGeneration": 1 });
    let calls = vec![
        Expect::get(&saved_path()).answer(Answer::error(404, "NotFound")),
        patched(json!({ "conditions": [condition] }))
            .answer(Answer::ok(&json!({ "metadata": {} }))),
        event("AsExpected"),
    ];
    assert_eq!(
        reconciled(calls, contents).await.unwrap(),
        Action::requeue(NEXT)
    );
}

#[tokio::test]
async fn the_old_signer_is_saved_before_it_is_replaced() {
    let [old, _] = signers();
    let leaf = client(&old, now());
    let trusted = [old.certificate.clone()];
    let early = || {
        contents(
            request(&[("SignerClassValid", "True")]),
            &old,
            &trusted,
            &leaf,
        )
    };
    let owner = json!({ "kind": "CertificateRevocationRequest", "name": "r", "uid": "u" });
    let body = json!({ "metadata": { "name": saved_name("r"), "ownerReferences": [owner] } });
    let calls = vec![
        Expect::get(&saved_path()).answer(Answer::error(404, "NotFound")),
        Expect::post(&format!("{NAMESPACE}/secrets"))
            .body(body)
            .answer(saved(&old)),
    ];
    assert_eq!(
        reconciled(calls, early()).await.unwrap(),
        Action::requeue(NEXT)
    );
    // Not by this request: it is left alone.
    let mut foreign = objects::saved_secret(&saved_name("r"), &old, OwnerReference::default());
    foreign.metadata.resource_version = Some("1".to_owned());
    let foreign = Answer::ok(&serde_json::to_value(foreign).unwrap());
    let calls = vec![Expect::get(&saved_path()).answer(foreign)];
    assert_eq!(
        reconciled(calls, early()).await.unwrap(),
        Action::requeue(WAIT)
    );
    let stale = contents(request(&[(ROOTS, "False")]), &old, &trusted, &leaf);
    let annotation = json!({ "auth.openshift.io/certificate-not-after": "force-regeneration" });
    let calls = vec![
        Expect::get(&saved_path()).answer(saved(&old)),
        Expect::put(&format!("{NAMESPACE}/secrets/customer-system-admin-signer"))
            .body(json!({ "metadata": { "resourceVersion": "7", "annotations": annotation } }))
            .answer(Answer::ok(&json!({ "metadata": {} }))),
    ];
    assert_eq!(
        reconciled(calls, stale).await.unwrap(),
        Action::requeue(NEXT)
    );
}

#[tokio::test]
async fn without_its_deployment_nothing_is_proven() {
    let [old, new] = signers();
    let leaf = client(&old, now());
    let trusted = [new.certificate.clone(), old.certificate.clone()];
    let contents = contents(
        request(&[(ROOTS, "True"), (TRUSTED, "False")]),
        &new,
        &trusted,
        &leaf,
    );
    let calls = vec![
        Expect::get(&saved_path()).answer(saved(&old)),
        Expect::get("/apis/apps/v1/namespaces/clusters-a/deployments/kube-apiserver")
            .answer(Answer::error(404, "NotFound")),
    ];
    assert_eq!(
        reconciled(calls, contents).await.unwrap(),
        Action::requeue(WAIT)
    );
}

/// A replica that does not answer is no proof, and nothing is distrusted meanwhile.
#[tokio::test]
async fn a_replica_without_an_answer_is_no_proof() {
    let [old, new] = signers();
    let leaf = client(&old, now());
    let trusted = [new.certificate.clone(), old.certificate.clone()];
    let contents = contents(
        request(&[(ROOTS, "True"), (TRUSTED, "False")]),
        &new,
        &trusted,
        &leaf,
    );
    // A port that is closed.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let pod = json!({
        "metadata": { "name": "kube-apiserver-0" },
        "spec": { "containers": [{ "name": "a", "ports": [{ "name": "client", "containerPort": port }] }] },
        "status": { "podIP": "127.0.0.1", "conditions": [{ "type": "Ready", "status": "True" }] },
    });
    let deployment =
        json!({ "metadata": {}, "spec": { "replicas": 1, "selector": {}, "template": {} } });
    let root = json!({ "metadata": {}, "data": { "ca.crt": new.certificate.pem() } });
    let calls = vec![
        Expect::get(&saved_path()).answer(saved(&old)),
        Expect::get("/apis/apps/v1/namespaces/clusters-a/deployments/kube-apiserver")
            .answer(Answer::ok(&deployment)),
        Expect::get(&format!("{NAMESPACE}/pods")).answer(Answer::list(&[pod])),
        Expect::get(&format!("{NAMESPACE}/configmaps/root-ca")).answer(Answer::ok(&root)),
    ];
    assert_eq!(
        reconciled(calls, contents).await.unwrap(),
        Action::requeue(WAIT)
    );
}

#[tokio::test]
async fn the_bundle_is_pruned_in_the_version_that_was_read() {
    let [old, new] = signers();
    let leaf = client(&new, now());
    let trusted = [new.certificate.clone(), old.certificate.clone()];
    let state = [(ROOTS, "True"), (TRUSTED, "True"), (LEAVES, "False")];
    let pruned = json!({ "ca-bundle.crt": new.certificate.pem() });
    let calls = |answer| {
        vec![
            Expect::get(&saved_path()).answer(saved(&old)),
            Expect::put(&format!(
                "{NAMESPACE}/configmaps/customer-system-admin-signer-ca"
            ))
            .body(json!({ "metadata": { "resourceVersion": "7" }, "data": pruned }))
            .answer(answer),
        ]
    };
    let contents = || contents(request(&state), &new, &trusted, &leaf);
    let written = Answer::ok(&json!({ "metadata": {} }));
    assert_eq!(
        reconciled(calls(written), contents()).await.unwrap(),
        Action::requeue(NEXT)
    );
    let conflict = Answer::error(409, "Conflict");
    let error = reconciled(calls(conflict), contents()).await.unwrap_err();
    assert_eq!(error.retry(), Retry::AtOnce);
}

#[tokio::test]
async fn complete_requests_cause_no_calls() {
    let [_, new] = signers();
    let leaf = client(&new, now());
    let complete = request(&[(REVOKED, "True")]);
    let mut deleted = request(&[(ROOTS, "False")]);
    deleted.metadata.deletion_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now()));
    for request in [complete, deleted] {
        let contents = contents(request, &new, &[], &leaf);
        assert_eq!(
            reconciled(Vec::new(), contents).await.unwrap(),
            Action::await_change()
        );
    }
}
