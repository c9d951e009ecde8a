//! Service IDs, their policies and their API keys.

use serde_json::{Value, json};
use support::rest::Request;

use super::{ACCOUNT, IbmCloud, Kind, absent, conflict, is_asked_for, refused, unknown};
use crate::Answer;

impl IbmCloud {
    pub(super) fn identity(&mut self, request: &Request, parts: &[&str]) -> Answer {
        let body = &request.body;
        match (request.method.as_str(), parts) {
            ("GET", ["v1", "apikeys", "details"]) => match request.headers.get("iam-apikey") {
                Some(key) if !key.is_empty() => Answer::ok(json!({ "account_id": ACCOUNT })),
                _ => refused(400, "no_key"),
            },
            ("GET", ["v1", "serviceids"]) => self.list(Kind::ServiceId, "serviceids", |it| {
                is_asked_for(request, it, "account_id", "account_id")
                    && is_asked_for(request, it, "name", "name")
            }),
            ("GET", ["v1", "serviceids", id]) => self.one(Kind::ServiceId, id),
            ("POST", ["v1", "serviceids"]) => self.create_service_id(body),
            ("DELETE", ["v1", "serviceids", id]) => self.delete_service_id(id),
            ("GET", ["v1", "policies"]) => self.list(Kind::Policy, "policies", |it| {
                let asked = request.parameter("iam_id");
                asked.is_some() && subject(it) == asked.as_deref()
            }),
            ("POST", ["v1", "policies"]) => self.create_policy(body),
            ("DELETE", ["v1", "policies", id]) => self.delete(Kind::Policy, id),
            ("GET", ["v1", "apikeys"]) => self.list(Kind::ApiKey, "apikeys", |it| {
                is_asked_for(request, it, "iam_id", "iam_id")
            }),
            ("POST", ["v1", "apikeys"]) => self.create_api_key(body),
            ("DELETE", ["v1", "apikeys", id]) => self.delete(Kind::ApiKey, id),
            _ => unknown(),
        }
    }

    /// Adds a service ID, and returns its IAM ID.
    pub fn add_service_id(&mut self, name: &str, description: &str) -> String {
        let value = json!({ "name": name, "description": description, "account_id": ACCOUNT });
        let id = self.add(Kind::ServiceId, value);
        let iam_id = format!("iam-{id}");
        self.set(Kind::ServiceId, &id, "iam_id", json!(iam_id));
        iam_id
    }

    fn create_service_id(&mut self, body: &Value) -> Answer {
        if body["account_id"] != ACCOUNT {
            return refused(400, "invalid_account");
        }
        let text = |field: &str| body[field].as_str().unwrap_or_default().to_owned();
        let iam_id = self.add_service_id(&text("name"), &text("description"));
        let id = iam_id.trim_start_matches("iam-");
        Answer {
            status: 201,
            ..self.one(Kind::ServiceId, id)
        }
    }

    /// With its policies and its API keys.
    fn delete_service_id(&mut self, id: &str) -> Answer {
        let iam_id = format!("iam-{id}");
        for policy in self.ids(Kind::Policy, |it| subject(it) == Some(iam_id.as_str())) {
            self.remove(Kind::Policy, &policy);
        }
        for key in self.ids(Kind::ApiKey, |it| it["iam_id"] == iam_id) {
            self.remove(Kind::ApiKey, &key);
        }
        self.delete(Kind::ServiceId, id)
    }

    fn create_policy(&mut self, body: &Value) -> Answer {
        if !self.has_identity(subject(body)) {
            return refused(400, "invalid_subject");
        }
        let is_same = |it: &Value| {
            ["subjects", "roles", "resources"]
                .iter()
                .all(|field| it[*field] == body[*field])
        };
        if self.all(Kind::Policy).any(is_same) {
            return conflict();
        }
        let id = self.add(Kind::Policy, body.clone());
        Answer {
            status: 201,
            ..self.one(Kind::Policy, &id)
        }
    }

    fn create_api_key(&mut self, body: &Value) -> Answer {
        if !self.has_identity(body["iam_id"].as_str()) {
            return refused(400, "invalid_iam_id");
        }
        let id = self.add(Kind::ApiKey, body.clone());
        let mut answer = self.one(Kind::ApiKey, &id);
        // It is in no other response.
        answer.body["apikey"] = json!(format!("secret-of-{id}"));
        answer.status = 201;
        answer
    }

    fn has_identity(&self, iam_id: Option<&str>) -> bool {
        let mut identities = self.all(Kind::ServiceId);
        iam_id.is_some_and(|iam_id| identities.any(|it| it["iam_id"] == iam_id))
    }

    pub(super) fn delete(&mut self, kind: Kind, id: &str) -> Answer {
        if self.remove(kind, id) {
            Answer::empty(204)
        } else {
            absent()
        }
    }
}

/// Whose policy it is.
fn subject(policy: &Value) -> Option<&str> {
    policy.pointer("/subjects/0/attributes/0/value")?.as_str()
}
