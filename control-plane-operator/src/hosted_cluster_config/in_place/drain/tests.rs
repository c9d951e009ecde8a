//! Tables of requests and pods, and passes against a mock API server.

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::Full;
use kube::client::Body;
use support::testing::{Answer, Expect, Scenario};

use super::super::super::context::testing::{Cached, context, control_plane, refused};
use super::*;

const PODS: &str = "/api/v1/pods";

/// A cordoned node with a request of its daemon, whose condition `Ready` has this status.
fn node(name: &str, requested: &str, ready: &str) -> Value {
    json!({
        "metadata": { "name": name, "resourceVersion": "1", "annotations": { DESIRED_DRAIN: requested } },
        "spec": { "unschedulable": true },
        "status": { "conditions": [{ "type": "Ready", "status": ready }] },
    })
}

/// A pod that should have ended at this time, if it is being deleted.
fn pod(name: &str, end: Option<Timestamp>) -> Value {
    json!({ "metadata": {
        "name": name, "namespace": "default", "deletionTimestamp": end.map(|end| end.to_string()),
    } })
}

fn eviction(pod: &str) -> Expect {
    Expect::post(&format!("/api/v1/namespaces/default/pods/{pod}/eviction"))
}

/// Lists the pods of a node.
fn pods_of(node: &str, pods: &[Value]) -> Expect {
    let path = format!("{PODS}?fieldSelector=spec.nodeName%3D{node}");
    Expect::get(&path).answer(Answer::list(pods))
}

/// Completes a request of node `a`.
fn completion(requested: &str, is_cordoned: bool) -> Expect {
    Expect::patch("/api/v1/nodes/a").body(json!({
        "metadata": { "resourceVersion": "1", "annotations": { LAST_APPLIED_DRAIN: requested } },
        "spec": { "unschedulable": is_cordoned },
    }))
}

async fn context_with(scenario: &Scenario, nodes: Vec<Value>) -> Context {
    let cached = Cached {
        nodes,
        ..Cached::of(control_plane(&json!({})))
    };
    context(scenario, cached).await
}

async fn passed(scenario: &Scenario, nodes: Vec<Value>) -> Result<(), Error> {
    let result = pass(&context_with(scenario, nodes).await).await;
    scenario.finish();
    result
}

#[test]
fn drain_requests_are_completed_once() {
    let drain = |text: &str| Ok(Some(DrainRequest::Drain(text.to_owned())));
    let uncordon = |text: &str| Ok(Some(DrainRequest::Uncordon(text.to_owned())));
    for (requested, done, expected) in [
        ("drain-a", "", drain("drain-a")),
        ("drain-a", "drain-a", Ok(None)),
        ("drain-a-b", "drain-a", drain("drain-a-b")),
        ("drain", "", drain("drain")),
        ("uncordon-a", "drain-a", uncordon("uncordon-a")),
        ("uncordon-a", "uncordon-a", Ok(None)),
        ("", "", Ok(None)),
        ("", "drain-a", Ok(None)),
        ("reboot-a", "", Err("reboot")),
        ("other", "", Err("other")),
        ("drained-a", "drain-a", Err("drained")),
    ] {
        let node = json!({ "metadata": {
            "name": "n",
            "annotations": { DESIRED_DRAIN: requested, LAST_APPLIED_DRAIN: done },
        } });
        let found = pending_request(&serde_json::from_value(node).unwrap());
        let found = found.map_err(|error| error.to_string());
        let expected: Result<Option<DrainRequest>, String> = expected.map_err(|verb: &str| {
            format!(
                "invalid annotation machineconfiguration.openshift.io/desiredDrain of Node n: unknown verb {verb:?}: \
                 it must be drain or uncordon"
            )
        });
        assert_eq!(found, expected, "{requested} {done}");
    }
}

#[test]
fn long_verbs_are_shortened_in_errors() {
    let node = node("n", &"x".repeat(100_000), "True");
    let error = pending_request(&serde_json::from_value(node).unwrap()).unwrap_err();
    assert!(error.to_string().len() < 300, "{error}");
}

#[test]
fn only_pods_that_an_unreachable_node_should_have_ended_are_not_awaited() {
    let now: Timestamp = "2030-01-01T00:10:00Z".parse().unwrap();
    let ago = |seconds: i64| Some(now - SignedDuration::from_secs(seconds));
    for (name, ready, end, expected) in [
        ("unreachable, overdue", "Unknown", ago(301), false),
        ("unreachable, at the limit", "Unknown", ago(300), true),
        (
            "unreachable, in its grace period",
            "Unknown",
            ago(-30),
            true,
        ),
        ("unreachable, not deleted", "Unknown", None, true),
        ("not ready", "False", ago(3600), true),
        ("ready", "True", ago(3600), true),
    ] {
        let node: Node = serde_json::from_value(node("n", "drain-a", ready)).unwrap();
        let pod: Pod = serde_json::from_value(pod("p", end)).unwrap();
        assert_eq!(is_awaited(&node, &pod, now), expected, "{name}");
    }
    let unknown = Node::default();
    let pod: Pod = serde_json::from_value(pod("p", ago(3600))).unwrap();
    assert!(is_awaited(&unknown, &pod, now), "no condition yet");
}

#[tokio::test]
async fn drains_of_unreachable_nodes_end() {
    let ago = |minutes: i64| Some(Timestamp::now() - SignedDuration::from_mins(minutes));
    for (name, ready, end, is_over) in [
        ("unreachable, overdue", "Unknown", ago(6), true),
        ("unreachable, not yet overdue", "Unknown", ago(4), false),
        ("not ready", "False", ago(60), false),
        ("ready", "True", ago(60), false),
    ] {
        let mut calls = vec![pods_of("a", &[pod("web-0", end)])];
        if is_over {
            calls.push(completion("drain-x", true));
        }
        let scenario = Scenario::new(calls);
        let result = passed(&scenario, vec![node("a", "drain-x", ready)]).await;
        assert!(result.is_ok(), "{name}: {result:?}");
    }
}

#[tokio::test]
async fn evictions_are_retried_until_no_pod_is_left() {
    for (name, answer, expected) in [
        ("evicted", Answer::ok(&json!({})), None),
        ("already gone", Answer::error(404, "NotFound"), None),
        ("protected", Answer::error(429, "TooManyRequests"), None),
        (
            "refused",
            refused(),
            Some("failed to evict Pod default/web-0 of Node a"),
        ),
    ] {
        let calls = [
            pods_of("a", &[pod("web-0", None)]),
            eviction("web-0").answer(answer),
        ];
        // The request is not completed: the pod was still there.
        let result = passed(&Scenario::new(calls), vec![node("a", "drain-x", "True")]).await;
        let error = result.err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), expected, "{name}");
    }
    let calls = [pods_of("a", &[]), completion("drain-x", true)];
    let nodes = vec![node("a", "drain-x", "True")];
    passed(&Scenario::new(calls), nodes).await.unwrap();
    let calls = [completion("uncordon-x", false)];
    let nodes = vec![node("a", "uncordon-x", "True")];
    passed(&Scenario::new(calls), nodes).await.unwrap();
}

#[tokio::test]
async fn failures_do_not_block_other_pods_and_nodes() {
    let done = |name: &str| Expect::patch(&format!("/api/v1/nodes/{name}"));
    // Nodes are independent, so their requests come in any order.
    let scenario = Scenario::new([]).always([
        pods_of("a", &[pod("web-0", None), pod("web-1", None)]),
        eviction("web-0").answer(refused()),
        eviction("web-1"),
        pods_of("b", &[]).answer(refused()),
        pods_of("c", &[]),
        done("c"),
        done("e"),
    ]);
    let nodes = vec![
        node("e", "uncordon-x", "True"),
        node("d", "reboot-x", "True"),
        node("c", "drain-x", "True"),
        node("b", "drain-x", "True"),
        node("a", "drain-x", "True"),
    ];
    let error = passed(&scenario, nodes).await.unwrap_err();
    let mut seen = scenario.seen();
    seen.sort();
    let expected = [
        "GET /api/v1/pods",
        "GET /api/v1/pods",
        "GET /api/v1/pods",
        "PATCH /api/v1/nodes/c",
        "PATCH /api/v1/nodes/e",
        "POST /api/v1/namespaces/default/pods/web-0/eviction",
        "POST /api/v1/namespaces/default/pods/web-1/eviction",
    ];
    assert_eq!(seen, expected);
    // In a fixed order, with the cause of each.
    let text = error.to_string();
    let mut rest = text.as_str();
    for part in [
        "failed to evict Pod default/web-0 of Node a: ",
        "Forbidden for the test",
        "; failed to list Pods of Node b: ",
        "Forbidden for the test",
        "; invalid annotation machineconfiguration.openshift.io/desiredDrain of Node d: unknown verb \"reboot\"",
    ] {
        let Some((_, after)) = rest.split_once(part) else {
            panic!("{part:?} is not where it should be in {text}");
        };
        rest = after;
    }
}

#[tokio::test(start_paused = true)]
async fn evictions_without_an_answer_end_with_the_attempt() {
    let scenario = Scenario::new([]);
    let mut ctx = context_with(&scenario, vec![node("a", "drain-x", "True")]).await;
    let service = tower::service_fn(|request: Request<Body>| async move {
        let is_eviction = request.method() == Method::POST;
        if is_eviction {
            std::future::pending::<()>().await;
        }
        let items = [pod("web-0", None), pod("web-1", None)];
        let list = json!({ "metadata": { "resourceVersion": "1" }, "items": items });
        let body = Full::new(Bytes::from(list.to_string()));
        Ok::<_, kube::Error>(Response::new(body))
    });
    ctx.guest = kube::Client::new(service, "default");
    let begun = tokio::time::Instant::now();
    let error = pass(&ctx).await.unwrap_err();
    assert_eq!(begun.elapsed(), ATTEMPT);
    assert_eq!(
        error.to_string(),
        "waiting for 2 evictions of Pods of Node a, which did not end within 90s"
    );
}

#[test]
fn pods_that_a_drain_skips_are_not_evicted() {
    for (pod, expected) in [
        (json!({ "metadata": {} }), true),
        (
            json!({ "metadata": { "ownerReferences": [{ "kind": "ReplicaSet", "apiVersion": "apps/v1", "name": "a", "uid": "u" }] } }),
            true,
        ),
        (
            json!({ "metadata": { "ownerReferences": [{ "kind": "DaemonSet", "apiVersion": "apps/v1", "name": "a", "uid": "u" }] } }),
            false,
        ),
        (
            json!({ "metadata": { "annotations": { MIRROR: "x" } } }),
            false,
        ),
        (
            json!({ "metadata": { "labels": { "app": "machine-config-daemon" } } }),
            false,
        ),
        (
            json!({ "metadata": {}, "status": { "phase": "Succeeded" } }),
            false,
        ),
        (
            json!({ "metadata": { "labels": { DRAIN: "skip" } } }),
            false,
        ),
        (json!({ "metadata": { "labels": { DRAIN: "" } } }), true),
    ] {
        assert_eq!(
            is_evictable(&serde_json::from_value(pod.clone()).unwrap()),
            expected,
            "{pod}"
        );
    }
}
