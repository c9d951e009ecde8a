//! Reconciles of Secrets against a mock API server.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prometheus_client::registry::Registry;
use serde_json::json;
use support::testing::{Answer, Expect, Scenario};

use super::*;
use crate::tool;

const SECRETS: &str = "/api/v1/namespaces/clusters-dev/secrets";
const CONTROL_PLANES: &str =
    "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters-dev/hostedcontrolplanes";
const ONE: &str = "/api/v1/namespaces/clusters-dev/secrets/token-workers-0a";

fn context(scenario: &Scenario) -> Context {
    Context {
        client: scenario.client(),
        namespace: "clusters-dev".to_owned(),
        hosted_control_plane: Some("dev".to_owned()),
        recorder: tool::recorder(&scenario.client(), MANAGER),
        cache: Arc::new(Cache::default()),
        metrics: Metrics::new(&mut Registry::default()),
        programs: None,
    }
}

fn secret(annotations: &[(&str, &str)], config: &str) -> Value {
    let mut all = json!({
        "hypershift.openshift.io/ignition-config": "true",
        "hypershift.openshift.io/nodePool": "clusters/workers",
        "hypershift.openshift.io/last-token-generation-time": Timestamp::now().to_string(),
    });
    for (key, value) in annotations {
        all[format!("hypershift.openshift.io/{key}")] = json!(value);
    }
    json!({
        "metadata": { "name": "token-workers-0a", "uid": "u", "resourceVersion": "7", "annotations": all },
        "data": { "token": STANDARD.encode("0b7c"), "config": STANDARD.encode(config) },
    })
}

fn get_secret(secret: &Value) -> Expect {
    Expect::get(ONE).answer(Answer::ok(secret))
}

/// The calls that read the inputs of payloads.
fn facts() -> Vec<Expect> {
    vec![
        Expect::get(&format!("{CONTROL_PLANES}/dev")).answer(Answer::ok(&hcp("dev"))),
        secret_with("bootstrap-kubeconfig", "kubeconfig"),
        secret_with("pull-secret", ".dockerconfigjson"),
        Expect::get("/api/v1/namespaces/clusters-dev/configmaps/kubelet-client-ca").answer(
            Answer::ok(&json!({ "metadata": {}, "data": { "ca.crt": "CA\n" } })),
        ),
    ]
}

fn secret_with(name: &str, key: &str) -> Expect {
    let object = json!({ "metadata": { "name": name }, "data": { key: STANDARD.encode("{}") } });
    Expect::get(&format!("{SECRETS}/{name}")).answer(Answer::ok(&object))
}

fn hcp(name: &str) -> Value {
    json!({
        "metadata": { "name": name, "namespace": "clusters-dev" },
        "spec": {
            "releaseImage": "images.example.com/release:4.22.0",
            "infraID": "dev-x", "issuerURL": "https://kubernetes.default.svc",
            "platform": { "type": "None" },
            "dns": { "baseDomain": "example.com" },
            "services": [], "etcd": { "managementType": "Managed" },
            "pullSecret": { "name": "pull-secret" }, "sshKey": { "name": "" },
        },
    })
}

/// Machines never get the pull secret or the address of another cluster in the same namespace.
#[tokio::test]
async fn payloads_use_the_named_control_plane_only() {
    let list = |items: &[Value]| Expect::get(CONTROL_PLANES).answer(Answer::list(items));
    let (own, other) = (hcp("dev"), hcp("another"));
    for (name, calls, expected) in [
        (Some("dev"), facts(), Ok(())),
        // Older operators do not pass the name.
        (
            None,
            [vec![list(std::slice::from_ref(&own))], facts().split_off(1)].concat(),
            Ok(()),
        ),
        (None, vec![list(&[other, own])], Err("more than one")),
        (None, vec![list(&[])], Err("waiting for")),
    ] {
        let scenario = Scenario::new(calls);
        let read = read::facts(&scenario.client(), "clusters-dev", name).await;
        match (read, expected) {
            (Ok(_), Ok(())) => {}
            (Err(error), Err(text)) if error.to_string().contains(text) => {}
            (read, expected) => panic!("{:?} is not {expected:?}", read.err()),
        }
        scenario.finish();
    }
}

fn status_update(reason: &str) -> Expect {
    Expect::patch(ONE)
        .body(json!({
            "metadata": { "uid": "u", "resourceVersion": "7" },
            "data": { "reason": STANDARD.encode(reason) },
        }))
        .answer(Answer::ok(
            &json!({ "metadata": { "name": "token-workers-0a" } }),
        ))
}

#[tokio::test]
async fn payloads_are_cached_and_reported() {
    let secret = secret(&[], "");
    let scenario = Scenario::new(
        [
            vec![get_secret(&secret)],
            facts(),
            vec![status_update("AsExpected")],
        ]
        .concat(),
    );
    let ctx = context(&scenario);
    let again = reconcile("token-workers-0a", &ctx).await.unwrap();
    assert_eq!(again, REFRESH_INTERVAL);
    assert_eq!(ctx.cache.get("0b7c").unwrap().pool, "clusters/workers");
    scenario.finish();
}

#[tokio::test]
async fn reported_payloads_are_not_written_again() {
    let mut secret = secret(&[], "");
    secret["data"]["reason"] = json!(STANDARD.encode("AsExpected"));
    secret["data"]["message"] = json!(STANDARD.encode("Payload generated successfully"));
    let scenario = Scenario::new([vec![get_secret(&secret)], facts()].concat());
    reconcile("token-workers-0a", &context(&scenario))
        .await
        .unwrap();
    scenario.finish();
}

#[tokio::test]
async fn rejected_configs_have_no_payload() {
    let secret = secret(&[], "kind: ConfigMap\nmetadata: {name: c}\n");
    let scenario = Scenario::new(
        [
            vec![get_secret(&secret)],
            facts(),
            vec![status_update("InvalidConfig")],
        ]
        .concat(),
    );
    let ctx = context(&scenario);
    reconcile("token-workers-0a", &ctx).await.unwrap();
    assert_eq!(ctx.cache.get("0b7c"), None);
    scenario.finish();
}

#[tokio::test]
async fn incomplete_control_planes_are_retried() {
    let secret = secret(&[], "");
    let mut calls = vec![get_secret(&secret)];
    calls.extend(facts().into_iter().take(1));
    let missing = format!("{SECRETS}/bootstrap-kubeconfig");
    calls.push(Expect::get(&missing).answer(Answer::error(404, "NotFound")));
    calls.push(status_update("ControlPlanePending"));
    let scenario = Scenario::new(calls);
    let again = reconcile("token-workers-0a", &context(&scenario))
        .await
        .unwrap();
    assert_eq!(again, RETRY_INTERVAL);
    scenario.finish();
}

#[tokio::test]
async fn old_tokens_are_rotated_and_expired_ones_deleted() {
    let old = secret(
        &[("last-token-generation-time", "2020-01-01T00:00:00Z")],
        "",
    );
    let expired = secret(
        &[(
            "ignition-token-expiration-timestamp",
            "2020-01-01T00:00:00Z",
        )],
        "",
    );
    let scenario = Scenario::new([
        get_secret(&old),
        Expect::patch(ONE)
            .body(json!({ "metadata": { "resourceVersion": "7" }, "data": { "old_token": STANDARD.encode("0b7c") } }))
            .answer(Answer::ok(&json!({ "metadata": {} }))),
        get_secret(&expired),
        Expect::delete(ONE)
            .body(json!({ "preconditions": { "uid": "u" } }))
            .answer(Answer::ok(&json!({ "metadata": {} }))),
        Expect::get(ONE).answer(Answer::error(404, "NotFound")),
    ]);
    let ctx = context(&scenario);
    for _ in 0..3 {
        reconcile("token-workers-0a", &ctx).await.unwrap();
    }
    assert_eq!(ctx.metrics.rotated.get(), 1);
    scenario.finish();
}

#[tokio::test]
async fn conflicting_replicas_retry_at_once() {
    let old = secret(
        &[("last-token-generation-time", "2020-01-01T00:00:00Z")],
        "",
    );
    let scenario = Scenario::new([
        get_secret(&old),
        Expect::patch(ONE).answer(Answer::error(409, "Conflict")),
    ]);
    let error = reconcile("token-workers-0a", &context(&scenario))
        .await
        .unwrap_err();
    assert_eq!(error.retry(), Retry::AtOnce);
    scenario.finish();
}
