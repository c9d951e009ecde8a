//! A mock API server: it asserts which requests are sent, in which order, and answers them.
//!
//! Tests of whole behaviours use a real API server.
//!
//! ```
//! use k8s_openapi::api::core::v1::Namespace;
//! use serde_json::json;
//! use support::testing::{Answer, Expect, Scenario};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let scenario = Scenario::new([
//!     Expect::get("/api/v1/namespaces/a").answer(Answer::ok(&json!({ "metadata": { "name": "a" } }))),
//! ]);
//! let api: kube::Api<Namespace> = kube::Api::all(scenario.client());
//! api.get("a").await.unwrap();
//! scenario.finish();
//! # }
//! ```

mod http_server;
mod pod_security;
mod rbac;
mod tcp;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
pub use http_server::{HttpAnswer, HttpServer};
use kube::client::Body;
pub use pod_security::restricted_violations;
pub use rbac::writes_hosted_clusters;
use serde_json::{Value, json};
pub use tcp::{Reply, TcpServer};

/// An ordered list of expected calls.
#[derive(Debug, Clone, Default)]
pub struct Scenario {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    expected: VecDeque<Expect>,
    /// Calls that may come at any time, any number of times.
    always: Vec<Expect>,
    is_lenient: bool,
    problems: Vec<String>,
    seen: Vec<String>,
}

/// One expected call.
#[derive(Debug, Clone)]
pub struct Expect {
    method: Method,
    path: String,
    body: Option<Value>,
    answer: Answer,
}

/// What is answered.
#[derive(Debug, Clone)]
pub struct Answer {
    status: StatusCode,
    body: Value,
}

/// A client of a server that never answers.
pub fn hung_client() -> kube::Client {
    let service = tower::service_fn(|_: Request<Body>| {
        std::future::pending::<Result<Response<Full<Bytes>>, kube::Error>>()
    });
    kube::Client::new(service, "default")
}

// === impl Answer ===

impl Answer {
    /// 200 with this body; null is an empty one.
    pub fn ok(body: &Value) -> Self {
        Self {
            status: StatusCode::OK,
            body: body.clone(),
        }
    }

    /// 200 with a list of these items.
    pub fn list(items: &[Value]) -> Self {
        Self::ok(&json!({ "metadata": { "resourceVersion": "1" }, "items": items }))
    }

    /// A Kubernetes error.
    pub fn error(code: u16, reason: &str) -> Self {
        Self {
            status: StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            body: json!({
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Failure",
                "message": format!("{reason} for the test"),
                "reason": reason,
                "code": code,
            }),
        }
    }
}

// === impl Expect ===

impl Expect {
    /// A call of `method` on `path`; a path without a query matches any.
    pub fn call(method: Method, path: &str) -> Self {
        Self {
            method,
            path: path.to_owned(),
            body: None,
            answer: Answer::ok(&json!({})),
        }
    }

    /// A read.
    pub fn get(path: &str) -> Self {
        Self::call(Method::GET, path)
    }

    /// A creation.
    pub fn post(path: &str) -> Self {
        Self::call(Method::POST, path)
    }

    /// A replacement.
    pub fn put(path: &str) -> Self {
        Self::call(Method::PUT, path)
    }

    /// A patch.
    pub fn patch(path: &str) -> Self {
        Self::call(Method::PATCH, path)
    }

    /// A deletion.
    pub fn delete(path: &str) -> Self {
        Self::call(Method::DELETE, path)
    }

    /// The request's body holds at least this.
    #[must_use]
    pub fn body(mut self, part: Value) -> Self {
        self.body = Some(part);
        self
    }

    /// What is answered.
    #[must_use]
    pub fn answer(mut self, answer: Answer) -> Self {
        self.answer = answer;
        self
    }

    fn is(&self, method: &Method, path: &str, query: &str) -> bool {
        let wanted = match self.path.split_once('?') {
            None => path == self.path,
            Some((wanted, part)) => path == wanted && query.contains(part),
        };
        wanted && *method == self.method
    }
}

// === impl Scenario ===

impl Scenario {
    /// These calls, in this order, and no others.
    pub fn new(expected: impl IntoIterator<Item = Expect>) -> Self {
        let scenario = Self::default();
        scenario.state().expected = expected.into_iter().collect();
        scenario
    }

    /// Calls that may also come, at any time and any number of times.
    #[must_use]
    pub fn always(self, calls: impl IntoIterator<Item = Expect>) -> Self {
        self.state().always.extend(calls);
        self
    }

    /// Any other call may come, too: reads find nothing, and writes are answered with what they write.
    #[must_use]
    pub fn lenient(self) -> Self {
        self.state().is_lenient = true;
        self
    }

    /// A client of this server.
    pub fn client(&self) -> kube::Client {
        let scenario = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let scenario = scenario.clone();
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect().await?.to_bytes();
                let query = head.uri.query().unwrap_or_default();
                let answer = scenario.answer(&head.method, head.uri.path(), query, &body);
                let body = match answer.body {
                    Value::Null => Bytes::new(),
                    body => Bytes::from(body.to_string()),
                };
                let mut response = Response::new(Full::new(body));
                *response.status_mut() = answer.status;
                Ok::<_, kube::Error>(response)
            }
        });
        kube::Client::new(service, "default")
    }

    /// The calls so far: method and path.
    pub fn seen(&self) -> Vec<String> {
        self.state().seen.clone()
    }

    /// Panics unless every expected call has come, and no other.
    pub fn finish(&self) {
        let state = self.state();
        assert!(
            state.problems.is_empty(),
            "{}\nseen: {:#?}",
            state.problems.join("\n"),
            state.seen
        );
        let missing: Vec<_> = state
            .expected
            .iter()
            .map(|expect| format!("{} {}", expect.method, expect.path))
            .collect();
        assert!(missing.is_empty(), "never called: {missing:?}");
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, method: &Method, path: &str, query: &str, body: &[u8]) -> Answer {
        let mut state = self.state();
        state.seen.push(format!("{method} {path}"));
        let next = state.expected.front();
        if next.is_none_or(|next| !next.is(method, path, query)) {
            let always = state.always.iter().find(|e| e.is(method, path, query));
            if let Some(expect) = always {
                return expect.answer.clone();
            }
            if state.is_lenient {
                return other(method, body);
            }
        }
        let Some(expect) = state.expected.pop_front() else {
            let problem = format!("{method} {path}?{query}: no call was expected");
            return state.refuse(problem);
        };
        if !expect.is(method, path, query) {
            let problem = format!(
                "{method} {path}?{query} instead of {} {}",
                expect.method, expect.path
            );
            state.expected.push_front(expect);
            return state.refuse(problem);
        }
        let sent: Value = serde_json::from_slice(body).unwrap_or_default();
        if let Some(part) = &expect.body
            && !holds(&sent, part)
        {
            return state.refuse(format!("{method} {path}: {sent} does not hold {part}"));
        }
        expect.answer
    }
}

/// The answer to an unexpected call of a lenient scenario.
fn other(method: &Method, body: &[u8]) -> Answer {
    match *method {
        Method::GET | Method::DELETE => Answer::error(404, "NotFound"),
        _ => Answer::ok(&serde_json::from_slice(body).unwrap_or_default()),
    }
}

// === impl State ===

impl State {
    fn refuse(&mut self, problem: String) -> Answer {
        self.problems.push(problem);
        Answer::error(418, "Unexpected")
    }
}

/// Whether `whole` has everything that `part` has.
fn holds(whole: &Value, part: &Value) -> bool {
    match part {
        Value::Object(fields) => fields
            .iter()
            .all(|(key, value)| whole.get(key).is_some_and(|found| holds(found, value))),
        Value::Array(items) => whole.as_array().is_some_and(|found| {
            found.len() == items.len()
                && found.iter().zip(items).all(|(one, item)| holds(one, item))
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => whole == part,
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Namespace;
    use kube::Api;

    use super::*;

    #[tokio::test]
    async fn calls_out_of_order_fail() {
        let scenario = Scenario::new([Expect::get("/api/v1/namespaces/a")]);
        let api: Api<Namespace> = Api::all(scenario.client());
        api.get("b").await.unwrap_err();
        let problems = scenario.state().problems.clone();
        assert_eq!(
            problems,
            ["GET /api/v1/namespaces/b? instead of GET /api/v1/namespaces/a"]
        );
    }

    #[test]
    #[should_panic(expected = "never called")]
    fn missing_calls_fail() {
        Scenario::new([Expect::get("/api/v1/namespaces/a")]).finish();
    }

    #[test]
    fn bodies_must_contain_what_is_expected() {
        let whole = json!({ "a": { "b": [1, { "c": 2, "d": 3 }] }, "e": null });
        assert!(holds(&whole, &json!({ "a": { "b": [1, { "c": 2 }] } })));
        assert!(!holds(&whole, &json!({ "a": { "b": [1] } })));
        assert!(!holds(&whole, &json!({ "x": 1 })));
    }
}
