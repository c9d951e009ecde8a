//! Renewals against a server that expects each call.

use prometheus_client::registry::Registry;
use serde_json::Value;
use support::health::Health;
use support::shutdown;
use support::testing::{Answer, Expect, Scenario};

use super::*;

const NAMESPACE: &str = "hypershift";
const SECRET: &str = "/api/v1/namespaces/hypershift/secrets/capi-conversion-webhook-shim-serving";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const HOUR: Duration = Duration::from_hours(1);

/// So many hours after the certificate was issued.
fn at(hours: u32) -> UnixTime {
    UnixTime::since_unix_epoch(HOUR * (500_000 + hours))
}

fn serving() -> Serving {
    Serving::issue(&server_name(NAMESPACE), "", HOUR * 3, at(0)).unwrap()
}

fn secret(serving: &Serving, version: &str, owner: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {
            "namespace": NAMESPACE, "name": secret_name(), "resourceVersion": version,
            "labels": {"app.kubernetes.io/managed-by": owner},
            "managedFields": [{"manager": FIELD_MANAGER, "operation": "Apply"}],
        },
        "data": serving.data(),
    })
}

fn crd(name: &str, namespace: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "versions": [],
            "names": {"kind": "A", "plural": "as"},
            "conversion": {"strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": {"service": {"namespace": namespace, "name": conversion_certificates::WEBHOOK}},
            }},
        },
    })
}

fn read_secret(body: &Value) -> Expect {
    Expect::get(SECRET).answer(Answer::ok(body))
}

/// Check T07.
#[tokio::test(start_paused = true)]
async fn the_new_authority_is_trusted_everywhere_before_the_new_certificate_is_shown() {
    let current = serving();
    let list = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinitionList",
        "metadata": {}, "items": [crd("as.example.com", NAMESPACE), crd("others.example.com", "other")]});
    let trust = Expect::patch(&format!("{CRDS}/as.example.com"))
        .answer(Answer::ok(&crd("as.example.com", NAMESPACE)));
    let scenario = Scenario::new([
        read_secret(&secret(&current, "1", "hypershift-install")),
        Expect::get(CRDS).answer(Answer::ok(&list)),
        trust,
        Expect::patch(SECRET)
            .body(json!({"metadata": {"resourceVersion": "1"}}))
            .answer(Answer::ok(&secret(&current, "2", "hypershift-install"))),
        Expect::patch(SECRET)
            .body(json!({"metadata": {"resourceVersion": "2"}}))
            .answer(Answer::ok(&secret(&current, "3", "hypershift-install"))),
    ]);
    let begun = tokio::time::Instant::now();
    let pause = reconcile(&scenario.client(), NAMESPACE, at(2)).await;
    assert_eq!(pause.ok(), Some(plan::SOONEST));
    assert_eq!(begun.elapsed(), Duration::from_secs(30), "the overlap");
    scenario.finish();
}

/// Check T07.
#[tokio::test(start_paused = true)]
async fn nothing_is_shown_that_is_not_trusted() {
    let current = secret(&serving(), "1", "hypershift-install");
    let list = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinitionList",
        "metadata": {}, "items": [crd("as.example.com", NAMESPACE)]});
    let refused = Scenario::new([
        read_secret(&current),
        Expect::get(CRDS).answer(Answer::ok(&list)),
        Expect::patch(&format!("{CRDS}/as.example.com")).answer(Answer::error(403, "Forbidden")),
    ]);
    let result = reconcile(&refused.client(), NAMESPACE, at(2)).await;
    assert!(matches!(result, Err(Error::Trust { .. })), "{result:?}");
    refused.finish();
    // Another program has written the Secret meanwhile.
    let overtaken = Scenario::new([
        read_secret(&current),
        Expect::get(CRDS).answer(Answer::ok(&list)),
        Expect::patch(&format!("{CRDS}/as.example.com"))
            .answer(Answer::ok(&crd("as.example.com", NAMESPACE))),
        Expect::patch(SECRET).answer(Answer::error(409, "Conflict")),
    ]);
    let result = reconcile(&overtaken.client(), NAMESPACE, at(2)).await;
    assert!(matches!(result, Err(Error::Write { .. })), "{result:?}");
    overtaken.finish();
}

#[tokio::test]
async fn a_certificate_that_is_good_or_not_ours_is_left_alone() {
    let current = serving();
    let empty = json!({"kind": "Secret", "apiVersion": "v1", "metadata": {}});
    for (secret, hours, expected) in [
        (
            secret(&current, "1", "hypershift-install"),
            0,
            plan::LONGEST,
        ),
        (secret(&current, "1", "Helm"), 2, plan::LONGEST),
        (empty, 2, plan::LONGEST),
    ] {
        let scenario = Scenario::new([read_secret(&secret)]);
        let pause = reconcile(&scenario.client(), NAMESPACE, at(hours)).await;
        assert_eq!(pause.ok(), Some(expected));
        scenario.finish();
    }
    let missing = Scenario::new([Expect::get(SECRET).answer(Answer::error(404, "NotFound"))]);
    let pause = reconcile(&missing.client(), NAMESPACE, at(2)).await;
    assert_eq!(pause.ok(), Some(plan::LONGEST));
    missing.finish();
}

#[tokio::test(start_paused = true)]
async fn it_ends_with_the_process() {
    let scenario =
        Scenario::new([]).always([Expect::get(SECRET).answer(Answer::error(500, "InternalError"))]);
    let (signal, drain) = shutdown::channel();
    let client = scenario.client();
    let mut registry = Registry::default();
    let health = Health::new(&mut registry);
    let manager = Manager::new(&mut registry, &health);
    let running = run(&client, NAMESPACE, &manager, drain);
    let ending = async {
        tokio::time::sleep(RETRY * 3).await;
        signal.begin();
    };
    tokio::join!(running, ending);
    assert!(scenario.seen().len() >= 3, "{:?}", scenario.seen());
}
