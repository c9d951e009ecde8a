//! Checks against a mock API server.

use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http_body_util::StreamBody;
use hyper::body::Frame;
use serde_json::{Value, json};
use support::testing::{Answer, Expect, Scenario};

use super::*;

const PODS: &str = "/api/v1/namespaces/kube-system/pods";
const REPORT_PATH: &str =
    "/api/v1/namespaces/kube-system/configmaps/control-plane-connectivity-check";
const NOW: &str = "2030-01-01T00:10:00Z";

fn node(name: &str, ready: &str, is_cordoned: bool) -> Arc<Node> {
    let node = json!({
        "metadata": { "name": name },
        "spec": { "unschedulable": is_cordoned },
        "status": { "conditions": [{ "type": "Ready", "status": ready }] },
    });
    Arc::new(serde_json::from_value(node).unwrap())
}

fn pod(name: &str, node: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "namespace": "kube-system" },
        "spec": { "nodeName": node, "containers": [] },
    })
}

fn report(data: &Value) -> Answer {
    Answer::ok(&json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "control-plane-connectivity-check", "namespace": "kube-system" },
        "data": data,
    }))
}

/// Status and reason of both conditions.
fn states(found: &Connection) -> [(Status, &'static str); 2] {
    let conditions = found.conditions(NOW.parse().unwrap());
    conditions.map(|condition| (condition.status, condition.reason))
}

#[test]
fn conditions_have_the_reasons_of_their_findings() {
    let (read, now) = (
        ToNodes::Read,
        FromNodes::LastSucceeded(NOW.parse().unwrap()),
    );
    let good = (Status::True, "AsExpected");
    for (to_nodes, expected) in [
        (read.clone(), good),
        (
            ToNodes::NotListed("x".to_owned()),
            (Status::False, "ReconciliationError"),
        ),
        (
            ToNodes::NotRunning,
            (Status::False, "KonnectivityAgentPodsNotFound"),
        ),
        (
            ToNodes::NotRead("x".to_owned()),
            (Status::False, "KonnectivityAgentPodsNotFound"),
        ),
    ] {
        let found = Connection::Checked(to_nodes, now.clone());
        assert_eq!(states(&found), [expected, good], "{found:?}");
    }
    for (from_nodes, expected) in [
        (FromNodes::NoReport, (Status::Unknown, "ConfigMapNotFound")),
        (
            FromNodes::NotRead("x".to_owned()),
            (Status::Unknown, "ReconcileError"),
        ),
        (last_success(""), (Status::False, "KASAccessFailed")),
        (
            last_success("yesterday"),
            (Status::False, "KASAccessFailed"),
        ),
        (last_success("2030-01-01T00:05:00Z"), good),
        (
            last_success("2030-01-01T00:04:59Z"),
            (Status::False, "ConnectionCheckStale"),
        ),
        // The clock of a node may be ahead.
        (last_success("2030-01-01T01:00:00Z"), good),
    ] {
        let found = Connection::Checked(read.clone(), from_nodes);
        assert_eq!(states(&found), [good, expected], "{found:?}");
    }
    let unknown = (Status::Unknown, "NoWorkerNodesAvailable");
    assert_eq!(states(&Connection::NoNodes), [unknown, unknown]);
    let unknown = (Status::Unknown, "ReconcileError");
    let found = Connection::NodesNotListed("x".to_owned());
    assert_eq!(states(&found), [unknown, unknown]);
}

#[tokio::test]
async fn nothing_is_requested_without_available_nodes() {
    let nodes = [node("a", "False", false), node("b", "True", true)];
    for nodes in [&nodes[..], &[]] {
        let scenario = Scenario::new([]);
        let found = check(&scenario.client(), nodes).await;
        assert_eq!(found, Connection::NoNodes, "{nodes:?}");
        scenario.finish();
    }
}

/// Runs a check with one node `n`, which gets these answers for pods and logs, by pod.
async fn checked(pods: Answer, logs: &[(&str, Answer)]) -> ToNodes {
    let mut always = vec![
        Expect::get(PODS).answer(pods),
        Expect::get(REPORT_PATH).answer(report(&json!({ "lastSucceeded": NOW }))),
    ];
    for (pod, answer) in logs {
        always.push(Expect::get(&format!("{PODS}/{pod}/log")).answer(answer.clone()));
    }
    let scenario = Scenario::new([]).always(always);
    match check(&scenario.client(), &[node("n", "True", false)]).await {
        Connection::Checked(to_nodes, from_nodes) => {
            assert_eq!(from_nodes, last_success(NOW));
            to_nodes
        }
        found => panic!("{found:?}"),
    }
}

#[tokio::test]
async fn one_log_with_content_proves_the_connection() {
    let pods = || Answer::list(&[pod("lost", "gone"), pod("a", "n"), pod("b", "n")]);
    let (log, empty) = (Answer::ok(&json!("log")), Answer::ok(&Value::Null));
    let error = || Answer::error(500, "InternalError");
    for (logs, expected) in [
        // Those on available nodes come first: the lost one is not asked.
        (vec![("a", log.clone())], true),
        (vec![("a", error()), ("b", log.clone())], true),
        (vec![("a", empty.clone()), ("b", log)], true),
        (vec![("a", error()), ("b", empty), ("lost", error())], false),
    ] {
        let found = checked(pods(), &logs).await;
        assert_eq!(found == ToNodes::Read, expected, "{found:?}");
        if !expected {
            assert!(
                matches!(&found, ToNodes::NotRead(problem) if problem.starts_with("Pod kube-system/lost: ")),
                "{found:?}"
            );
        }
    }
    assert_eq!(checked(Answer::list(&[]), &[]).await, ToNodes::NotRunning);
    let refused = checked(Answer::error(403, "Forbidden"), &[]).await;
    assert!(matches!(refused, ToNodes::NotListed(_)), "{refused:?}");
}

#[tokio::test]
async fn a_missing_report_differs_from_one_that_cannot_be_read() {
    for (answer, expected) in [
        (Answer::error(404, "NotFound"), "ConfigMapNotFound"),
        (Answer::error(500, "InternalError"), "ReconcileError"),
        (report(&Value::Null), "KASAccessFailed"),
    ] {
        let scenario = Scenario::new([]).always([
            Expect::get(PODS).answer(Answer::list(&[])),
            Expect::get(REPORT_PATH).answer(answer),
        ]);
        let found = check(&scenario.client(), &[node("n", "True", false)]).await;
        assert_eq!(states(&found)[1].1, expected, "{found:?}");
    }
}

/// A kubelet of the hosted cluster may answer without an end.
#[tokio::test]
async fn only_the_beginning_of_a_log_is_read() {
    let sent = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&sent);
    let endless = tower::service_fn(move |_: http::Request<kube::client::Body>| {
        let count = Arc::clone(&count);
        let chunks = futures::stream::repeat_with(move || {
            count.fetch_add(1, Ordering::Relaxed);
            Ok::<_, std::convert::Infallible>(Frame::data(Bytes::from_static(&[b'a'; 1024])))
        });
        let response = http::Response::new(StreamBody::new(chunks));
        std::future::ready(Ok::<_, std::convert::Infallible>(response))
    });
    let client = kube::Client::new(endless, "default");
    let api = Api::namespaced(client, NAMESPACE);
    let params = LogParams::default();
    let found = timeout(REQUEST_TIMEOUT, has_log(&api, "agent", &params)).await;
    assert!(found.unwrap().unwrap());
    let chunks = sent.load(Ordering::Relaxed);
    assert!(chunks < 10, "{chunks} chunks of an endless log were read");
}
