//! Transit gateways, and their connections.

use serde_json::{Value, json};
use support::rest::Request;

use super::{ACCOUNT, Change, IbmCloud, Kind, absent, conflict, refused, unknown};
use crate::Answer;

impl IbmCloud {
    pub(super) fn transit(&mut self, request: &Request, parts: &[&str]) -> Answer {
        if request.parameter("version").is_none() {
            return refused(400, "missing_version");
        }
        let body = &request.body;
        match (request.method.as_str(), parts) {
            ("GET", ["v1", "transit_gateways"]) => {
                self.list(Kind::Gateway, "transit_gateways", |_| true)
            }
            ("POST", ["v1", "transit_gateways"]) => self.create_gateway(body),
            ("GET", ["v1", "transit_gateways", id]) => self.one(Kind::Gateway, id),
            ("DELETE", ["v1", "transit_gateways", id]) => {
                if self.all(Kind::Connection).any(|it| it["gateway"] == *id) {
                    return conflict();
                }
                self.delete(Kind::Gateway, id)
            }
            ("GET", ["v1", "transit_gateways", id, "connections"]) => {
                self.list(Kind::Connection, "connections", |it| it["gateway"] == *id)
            }
            ("POST", ["v1", "transit_gateways", id, "connections"]) => self.connect(id, body),
            ("GET", ["v1", "transit_gateways", _, "connections", id]) => {
                self.one(Kind::Connection, id)
            }
            ("DELETE", ["v1", "transit_gateways", _, "connections", id]) => {
                self.deleted_later(Kind::Connection, id, "status")
            }
            _ => unknown(),
        }
    }

    /// Adds a gateway that is available, and returns its identifier.
    pub fn add_gateway(&mut self, name: &str, global: bool) -> String {
        let id = self.add(
            Kind::Gateway,
            json!({ "name": name, "location": "us-south", "global": global, "status": "available" }),
        );
        let crn = format!("crn:v1:bluemix:public:transit:us-south:a/{ACCOUNT}::gateway:{id}");
        self.set(Kind::Gateway, &id, "crn", json!(crn));
        id
    }

    fn create_gateway(&mut self, body: &Value) -> Answer {
        let name = body["name"].as_str().unwrap_or_default();
        if self.named(Kind::Gateway, name).is_some() {
            return conflict();
        }
        let id = self.add_gateway(name, body["global"] == true);
        self.set(Kind::Gateway, &id, "location", body["location"].clone());
        self.set(Kind::Gateway, &id, "status", json!("pending"));
        self.later(Kind::Gateway, &id, Change::Set("status", "available"));
        Answer {
            status: 201,
            ..self.one(Kind::Gateway, &id)
        }
    }

    fn connect(&mut self, gateway: &str, body: &Value) -> Answer {
        let Some(found) = self.get(Kind::Gateway, gateway) else {
            return absent();
        };
        let network = &body["network_id"];
        let is_ready = |it: &Value| it["status"] == "available" || it["state"] == "active";
        let has_network = self
            .all(Kind::Vpc)
            .chain(self.all(Kind::Instance))
            .any(|it| it["crn"] == *network && is_ready(it));
        if !is_ready(found) || !has_network {
            return refused(400, "not_ready");
        }
        let is_there = |it: &Value| it["gateway"] == gateway && it["network_id"] == *network;
        if self.all(Kind::Connection).any(is_there) {
            return conflict();
        }
        let mut connection = body.clone();
        connection["gateway"] = json!(gateway);
        connection["status"] = json!("pending");
        let id = self.add(Kind::Connection, connection);
        let status = if self.failures > 0 {
            "failed"
        } else {
            "attached"
        };
        self.failures = self.failures.saturating_sub(1);
        self.later(Kind::Connection, &id, Change::Set("status", status));
        Answer {
            status: 201,
            ..self.one(Kind::Connection, &id)
        }
    }
}
