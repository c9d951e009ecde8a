//! Google's compute API, as far as an instance needs it. Operations are done as soon as they are begun.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::server::{Answer, Api};

/// Where operations are; the name of the zone is in it, since clients read it there.
const OPERATION: &str = "https://www.googleapis.com/compute/v1/projects/testbed/zones/us-central1-a/operations/operation";

/// Instances by name.
#[derive(Debug, Default)]
pub(super) struct Gcp {
    instances: BTreeMap<String, Value>,
}

// === impl Gcp ===

impl Api for Gcp {
    fn answer(&mut self, method: &str, path: &[&str], body: &Value) -> Option<Answer> {
        match (method, path) {
            ("POST", ["token"]) => Some(Answer::ok(json!({
                "access_token": "testbed",
                "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
                "token_type": "Bearer",
                "expires_in": 3600,
            }))),
            ("GET", ["compute", "v1", .., "instances", name]) => {
                Some(Answer::found(self.instances.get(*name).cloned()))
            }
            ("POST", ["compute", "v1", .., "instances"]) => {
                let name = body["name"].as_str()?;
                self.instances.insert(name.to_owned(), instance(name));
                Some(Answer::ok(operation("insert")))
            }
            ("DELETE", ["compute", "v1", .., "instances", name]) => {
                let gone = self.instances.remove(*name);
                Some(Answer::found(gone.map(|_| operation("delete"))))
            }
            // Clients do not poll: they ask for an answer when the operation is done.
            ("POST", ["compute", "v1", .., "operations", _, "wait"]) => {
                Some(Answer::ok(operation("wait")))
            }
            _ => None,
        }
    }
}

fn operation(kind: &str) -> Value {
    json!({
        "kind": "compute#operation",
        "name": "operation",
        "operationType": kind,
        "status": "DONE",
        "progress": 100,
        "selfLink": OPERATION,
    })
}

fn instance(name: &str) -> Value {
    json!({
        "kind": "compute#instance",
        "id": "1",
        "name": name,
        "status": "RUNNING",
        "networkInterfaces": [{ "name": "nic0", "networkIP": "10.0.0.2" }],
    })
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    #[test]
    fn instances_come_and_go_by_operations_that_are_waited_for() {
        let zone = "compute/v1/projects/testbed/zones/us-central1-a";
        let mut gcp = Gcp::default();
        for (method, path, status) in [
            ("GET", "instances/worker", StatusCode::NOT_FOUND),
            ("POST", "instances", StatusCode::OK),
            ("POST", "operations/operation/wait", StatusCode::OK),
            ("GET", "instances/worker", StatusCode::OK),
            ("DELETE", "instances/worker", StatusCode::OK),
            ("POST", "operations/operation/wait", StatusCode::OK),
            ("GET", "instances/worker", StatusCode::NOT_FOUND),
        ] {
            let whole = format!("{zone}/{path}");
            let segments: Vec<_> = whole.split('/').collect();
            let body = json!({ "name": "worker" });
            let answer = gcp.answer(method, &segments, &body).unwrap();
            assert_eq!(answer.status, status, "{method} {path}");
        }
    }
}
