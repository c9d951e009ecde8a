//! IBM's clouds, as far as a virtual server of a VPC or a logical partition needs them, with the service of identities.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use http::StatusCode;
use serde_json::{Value, json};

use super::server::{Answer, Api};

/// When tokens expire: in the year 2100.
const EXPIRATION: u64 = 4_102_444_800;

/// The host of the resource controller.
pub(super) const HOSTS: [&str; 1] = ["resource-controller.cloud.ibm.com"];

/// Virtual servers and logical partitions.
#[derive(Debug, Default)]
pub(super) struct Ibm {
    servers: Vec<Value>,
    partitions: Vec<Value>,
}

// === impl Ibm ===

impl Api for Ibm {
    fn answer(&mut self, method: &str, path: &[&str], body: &Value) -> Option<Answer> {
        match path {
            ["identity", "token"] => Some(Answer::ok(token())),
            ["v2", "resource_instances"] => Some(Answer::ok(json!({
                "rows_count": 1,
                "next_url": null,
                "resources": [{
                    "id": "testbed",
                    "guid": "testbed",
                    "name": "testbed",
                    "region_id": "us-south",
                    "state": "active",
                }],
            }))),
            ["tagging", "v3", "tags"] if method == "GET" => {
                Some(Answer::ok(json!({ "total_count": 0, "items": [] })))
            }
            ["tagging", "v3", "tags", ..] => Some(Answer::ok(json!({ "results": [] }))),
            ["vpc", "v1", rest @ ..] => self.vpc(method, rest, body),
            [
                "pcloud",
                "v1",
                "cloud-instances",
                _,
                "pvm-instances",
                rest @ ..,
            ] => self.power(method, rest, body),
            _ => None,
        }
    }
}

impl Ibm {
    fn vpc(&mut self, method: &str, path: &[&str], body: &Value) -> Option<Answer> {
        match (method, path) {
            ("GET", ["subnets"]) => Some(Answer::ok(json!({ "subnets": [] }))),
            ("GET", ["instances"]) => {
                let count = self.servers.len();
                let servers = &self.servers;
                Some(Answer::ok(
                    json!({ "instances": servers, "total_count": count }),
                ))
            }
            ("POST", ["instances"]) => {
                let server = server(body["name"].as_str()?);
                self.servers.push(server.clone());
                Some(Answer::new(StatusCode::CREATED, server))
            }
            ("DELETE", ["instances", id]) => {
                self.servers.retain(|one| one["id"] != *id);
                Some(Answer::empty())
            }
            _ => None,
        }
    }

    fn power(&mut self, method: &str, path: &[&str], body: &Value) -> Option<Answer> {
        match (method, path) {
            ("GET", []) => {
                let partitions = &self.partitions;
                Some(Answer::ok(json!({ "pvmInstances": partitions })))
            }
            ("POST", []) => {
                let partition = partition(body["serverName"].as_str()?);
                self.partitions.push(partition.clone());
                Some(Answer::new(StatusCode::CREATED, json!([partition])))
            }
            ("GET", [id]) => {
                let mut all = self.partitions.iter();
                let found = all.find(|one| one["pvmInstanceID"] == *id);
                Some(Answer::found(found.cloned()))
            }
            ("DELETE", [id]) => {
                self.partitions.retain(|one| one["pvmInstanceID"] != *id);
                Some(Answer::ok(json!({})))
            }
            _ => None,
        }
    }
}

/// Clients read the account in it, and do not verify it.
fn token() -> Value {
    let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let header = part(json!({ "alg": "HS256", "typ": "JWT" }));
    let claims = part(json!({ "account": { "bss": "testbed" } }));
    let signature = URL_SAFE_NO_PAD.encode("none");
    json!({
        "access_token": format!("{header}.{claims}.{signature}"),
        "refresh_token": "testbed",
        "token_type": "Bearer",
        "expires_in": 3600,
        "expiration": EXPIRATION,
    })
}

fn server(name: &str) -> Value {
    json!({
        "id": format!("server-{name}"),
        "crn": format!("crn:v1:testbed:::::::instance:server-{name}"),
        "name": name,
        "status": "running",
        "primary_network_interface": {
            "id": "interface",
            "name": "primary",
            "primary_ip": { "id": "address", "name": "primary", "address": "10.0.0.2" },
        },
    })
}

fn partition(name: &str) -> Value {
    json!({
        "pvmInstanceID": format!("partition-{name}"),
        "serverName": name,
        "status": "ACTIVE",
        "imageID": "rhcos",
        "health": { "status": "OK" },
        "networks": [{ "networkID": "testbed", "ipAddress": "10.0.0.2", "type": "fixed" }],
    })
}
