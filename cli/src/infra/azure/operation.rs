//! What takes time in Azure: where to ask for it, and what responses mean. Pure.

use std::time::Duration;

use serde_json::{Value, json};
use support::rest::Response;

/// The time between two questions, if Azure does not say it.
pub(super) const INTERVAL: Duration = Duration::from_secs(5);
/// The longest time between two questions.
const LONGEST_INTERVAL: u64 = 60;

/// An operation of which a response says that it has begun.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Operation {
    pub(super) url: String,
    pub(super) interval: Duration,
    reports: Reports,
}

/// How its URL reports how it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reports {
    /// By a document with a status.
    Document,
    /// By the status of the response.
    Status,
}

/// How it goes.
#[derive(Debug, PartialEq)]
pub(super) enum State {
    Pending,
    Done,
    /// With the document of an error.
    Failed(Value),
}

// === impl Operation ===

impl Operation {
    /// `None` if all was done when the response came.
    pub(super) fn of(response: &Response) -> Option<Self> {
        let header = |name: &str| response.headers.get(name).cloned();
        let location = || header("location").filter(|_| response.status == 202);
        let (url, reports) = match header("azure-asyncoperation") {
            Some(url) => (url, Reports::Document),
            None => (location()?, Reports::Status),
        };
        let seconds = header("retry-after").and_then(|it| it.parse().ok());
        let interval = seconds.map_or(INTERVAL, |it: u64| {
            Duration::from_secs(it.clamp(1, LONGEST_INTERVAL))
        });
        Some(Self {
            url,
            interval,
            reports,
        })
    }

    /// What the response at its URL means.
    pub(super) fn state(&self, response: &Response) -> State {
        match self.reports {
            Reports::Status if response.status == 202 => State::Pending,
            Reports::Status => State::Done,
            Reports::Document => match response.body["status"].as_str() {
                Some("Succeeded") => State::Done,
                Some("Failed" | "Canceled") => State::Failed(error(&response.body)),
                _ => State::Pending,
            },
        }
    }
}

fn error(body: &Value) -> Value {
    if body["error"].is_object() {
        return json!({ "error": body["error"] });
    }
    json!({ "error": { "code": body["status"], "message": "the operation has no details" } })
}

/// Whether a resource is still being changed.
pub(super) fn is_pending(document: &Value) -> bool {
    let state = document["properties"]["provisioningState"].as_str();
    state.is_some_and(|state| !["Succeeded", "Failed", "Canceled"].contains(&state))
}

/// Whether the last change of a resource has failed: it has to be repeated.
pub(super) fn has_failed(document: &Value) -> bool {
    let state = document["properties"]["provisioningState"].as_str();
    state.is_some_and(|state| ["Failed", "Canceled"].contains(&state))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn response(status: u16, headers: &[(&str, &str)], body: Value) -> Response {
        let headers = headers.iter();
        let headers = headers.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Response {
            status,
            headers: headers.collect::<BTreeMap<_, _>>(),
            body,
        }
    }

    #[test]
    fn operations_are_found_in_headers() {
        let document = ("azure-asyncoperation", "https://a/1");
        let location = ("location", "https://a/2");
        for (status, headers, expected) in [
            (201, vec![document], Some(("https://a/1", 5))),
            (202, vec![document, location], Some(("https://a/1", 5))),
            (
                202,
                vec![location, ("retry-after", "15")],
                Some(("https://a/2", 15)),
            ),
            (
                202,
                vec![location, ("retry-after", "0")],
                Some(("https://a/2", 1)),
            ),
            (
                202,
                vec![location, ("retry-after", "9999")],
                Some(("https://a/2", 60)),
            ),
            (
                202,
                vec![location, ("retry-after", "soon")],
                Some(("https://a/2", 5)),
            ),
            (201, vec![location], None),
            (200, vec![], None),
        ] {
            let found = Operation::of(&response(status, &headers, Value::Null));
            let found = found
                .as_ref()
                .map(|it| (it.url.as_str(), it.interval.as_secs()));
            assert_eq!(found, expected, "{status} {headers:?}");
        }
    }

    #[test]
    fn responses_say_how_it_goes() {
        let of = |reports| Operation {
            url: String::new(),
            interval: INTERVAL,
            reports,
        };
        let error = json!({ "error": { "code": "Quota", "message": "no" } });
        let mut failed = error.clone();
        failed["status"] = json!("Failed");
        let canceled =
            json!({ "error": { "code": "Canceled", "message": "the operation has no details" } });
        for (reports, status, body, expected) in [
            (Reports::Status, 202, Value::Null, State::Pending),
            (Reports::Status, 204, Value::Null, State::Done),
            (
                Reports::Document,
                200,
                json!({ "status": "InProgress" }),
                State::Pending,
            ),
            (
                Reports::Document,
                200,
                json!({ "status": "Succeeded" }),
                State::Done,
            ),
            (Reports::Document, 200, failed, State::Failed(error)),
            (
                Reports::Document,
                200,
                json!({ "status": "Canceled" }),
                State::Failed(canceled),
            ),
        ] {
            let found = of(reports).state(&response(status, &[], body.clone()));
            assert_eq!(found, expected, "{body}");
        }
    }

    #[test]
    fn documents_say_whether_a_resource_can_be_used() {
        for (state, pending, failed) in [
            (json!("Succeeded"), false, false),
            (json!("Updating"), true, false),
            (json!("Deleting"), true, false),
            (json!("Failed"), false, true),
            (Value::Null, false, false),
        ] {
            let document = json!({ "properties": { "provisioningState": state } });
            let found = (is_pending(&document), has_failed(&document));
            assert_eq!(found, (pending, failed), "{state}");
        }
    }
}
