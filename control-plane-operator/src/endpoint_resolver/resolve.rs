//! Requests and responses of the endpoint resolver: no I/O.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use k8s_openapi::api::core::v1::Pod;
use serde::{Deserialize, Serialize};
use support::admin::response;

use crate::https::text;

/// Path of requests.
const PATH: &str = "/resolve";
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A request.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Question {
    /// Labels of the pods.
    #[serde(default)]
    pub(crate) selector: BTreeMap<String, String>,
}

/// A response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Answer {
    /// Ready pods, sorted by name.
    pub(crate) pods: Vec<Target>,
}

/// A pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) ip: String,
}

/// Answers a request. Without `pods` they were not listed yet.
pub(super) fn answer(request: &Request<Bytes>, pods: Option<&[Arc<Pod>]>) -> Response<Full<Bytes>> {
    match request.uri().path() {
        "/healthz" => text(StatusCode::OK, "ok\n"),
        PATH if request.method() != Method::POST => {
            text(StatusCode::METHOD_NOT_ALLOWED, "only POST is allowed\n")
        }
        PATH => resolve(request.body(), pods),
        _ => text(
            StatusCode::NOT_FOUND,
            "not found: use /resolve or /healthz\n",
        ),
    }
}

fn resolve(body: &[u8], pods: Option<&[Arc<Pod>]>) -> Response<Full<Bytes>> {
    let Ok(Question { selector }) = serde_json::from_slice(body) else {
        return text(
            StatusCode::BAD_REQUEST,
            "the body must be {\"selector\": {\"label\": \"value\"}}\n",
        );
    };
    if selector.is_empty() {
        return text(StatusCode::BAD_REQUEST, "the selector must have a label\n");
    }
    let Some(pods) = pods else {
        return text(
            StatusCode::INTERNAL_SERVER_ERROR,
            "pods were not listed yet\n",
        );
    };
    let selected = pods.iter().filter(|pod| has_labels(pod, &selector));
    let mut pods: Vec<_> = selected.filter_map(|pod| target(pod)).collect();
    if pods.is_empty() {
        return text(StatusCode::NOT_FOUND, "no ready pod has these labels\n");
    }
    pods.sort();
    let body = serde_json::json!(Answer { pods }).to_string();
    response(StatusCode::OK, JSON, body)
}

fn has_labels(pod: &Pod, selector: &BTreeMap<String, String>) -> bool {
    let labels = pod.metadata.labels.as_ref();
    let has = |key, value| labels.and_then(|labels| labels.get(key)) == Some(value);
    selector.iter().all(|(key, value)| has(key, value))
}

/// Name and address of a pod that is running and ready.
fn target(pod: &Pod) -> Option<Target> {
    let status = pod.status.as_ref()?;
    let mut conditions = status.conditions.iter().flatten();
    let is_ready = conditions.any(|it| it.type_ == "Ready" && it.status == "True");
    let is_running = status.phase.as_deref() == Some("Running");
    Some(Target {
        name: pod.metadata.name.clone()?,
        ip: status.pod_ip.clone().filter(|ip| !ip.is_empty())?,
    })
    .filter(|_| is_ready && is_running)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str, phase: &str, ready: &str, ip: &str) -> Arc<Pod> {
        let pod = json!({
            "metadata": { "name": name, "labels": { "app": "etcd", "shard": "main" } },
            "status": {
                "phase": phase, "podIP": ip, "conditions": [{ "type": "Ready", "status": ready }],
            },
        });
        Arc::new(serde_json::from_value(pod).unwrap())
    }

    fn status(method: Method, path: &str, body: &str, pods: Option<&[Arc<Pod>]>) -> StatusCode {
        let request = Request::builder().method(method).uri(path);
        let request = request.body(Bytes::from(body.to_owned())).unwrap();
        answer(&request, pods).status()
    }

    #[test]
    fn invalid_requests_are_refused() {
        let pods = [pod("etcd-0", "Running", "True", "192.0.2.1")];
        let known = r#"{"selector":{"app":"etcd"}}"#;
        for (method, path, body, expected) in [
            (Method::GET, "/healthz", "", StatusCode::OK),
            (Method::POST, "/resolve", known, StatusCode::OK),
            (
                Method::GET,
                "/resolve",
                known,
                StatusCode::METHOD_NOT_ALLOWED,
            ),
            (Method::POST, "/resolve", "{", StatusCode::BAD_REQUEST),
            (Method::POST, "/resolve", "{}", StatusCode::BAD_REQUEST),
            (
                Method::POST,
                "/resolve",
                r#"{"selector":{}}"#,
                StatusCode::BAD_REQUEST,
            ),
            (
                Method::POST,
                "/resolve",
                r#"{"selector":{"app":"a"}}"#,
                StatusCode::NOT_FOUND,
            ),
            (
                Method::POST,
                "/resolve",
                r#"{"selector":{"app":"etcd","shard":"events"}}"#,
                StatusCode::NOT_FOUND,
            ),
            (Method::POST, "/other", known, StatusCode::NOT_FOUND),
        ] {
            let found = status(method, path, body, Some(&pods));
            assert_eq!(found, expected, "{path} {body}");
        }
        let unlisted = status(Method::POST, "/resolve", known, None);
        assert_eq!(unlisted, StatusCode::INTERNAL_SERVER_ERROR);
    }

    #[test]
    fn only_ready_pods_with_an_address_are_targets() {
        for (phase, ready, ip, expected) in [
            ("Running", "True", "192.0.2.1", true),
            ("Running", "False", "192.0.2.1", false),
            ("Pending", "True", "192.0.2.1", false),
            ("Succeeded", "False", "192.0.2.1", false),
            ("Running", "True", "", false),
        ] {
            let found = target(&pod("a", phase, ready, ip));
            assert_eq!(found.is_some(), expected, "{phase} {ready} {ip}");
        }
    }

    #[tokio::test]
    async fn pods_are_sorted_by_name() {
        use http_body_util::BodyExt as _;

        let pods =
            ["etcd-2", "etcd-0", "etcd-1"].map(|name| pod(name, "Running", "True", "192.0.2.1"));
        let response = resolve(br#"{"selector":{"app":"etcd"}}"#, Some(&pods));
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let answer: Answer = serde_json::from_slice(&body).unwrap();
        let names: Vec<_> = answer.pods.iter().map(|pod| pod.name.as_str()).collect();
        assert_eq!(names, ["etcd-0", "etcd-1", "etcd-2"]);
    }
}
