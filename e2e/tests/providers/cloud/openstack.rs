//! OpenStack, as far as a server with a port needs it.

use http::StatusCode;
use serde_json::{Value, json};

use super::server::{Answer, Api};

/// Ports and servers.
#[derive(Debug)]
pub(super) struct Openstack {
    url: String,
    ports: Vec<Value>,
    servers: Vec<Value>,
}

// === impl Openstack ===

impl Api for Openstack {
    fn answer(&mut self, method: &str, path: &[&str], body: &Value) -> Option<Answer> {
        match path {
            ["identity", "v3", "auth", "tokens"] => {
                let status = match method {
                    "POST" => StatusCode::CREATED,
                    _ => StatusCode::OK,
                };
                Some(Answer {
                    header: Some(("x-subject-token", "testbed")),
                    ..Answer::new(status, self.token())
                })
            }
            ["network"] => Some(Answer::ok(json!({
                "versions": [{ "id": "v2.0", "status": "CURRENT", "links": [] }],
            }))),
            ["network", "v2.0", rest @ ..] => self.network(method, rest, body),
            ["compute", "v2.1", rest @ ..] => self.compute(method, rest, body),
            _ => None,
        }
    }
}

impl Openstack {
    /// One whose services are at a URL.
    pub(super) fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            ports: Vec::new(),
            servers: Vec::new(),
        }
    }

    fn token(&self) -> Value {
        let service = |kind: &str, path: &str| {
            json!({
                "id": kind,
                "type": kind,
                "name": kind,
                "endpoints": [{
                    "id": kind,
                    "interface": "public",
                    "region": "RegionOne",
                    "region_id": "RegionOne",
                    "url": format!("{}/{path}", self.url),
                }],
            })
        };
        let domain = json!({ "id": "default", "name": "Default" });
        json!({ "token": {
            "methods": ["password"],
            "issued_at": "2026-11-22T00:00:00.000000Z",
            "expires_at": "2100-01-01T00:00:00.000000Z",
            "user": { "id": "testbed", "name": "testbed", "domain": domain },
            "project": { "id": "testbed", "name": "testbed", "domain": domain },
            "roles": [{ "id": "member", "name": "member" }],
            "catalog": [service("compute", "compute/v2.1"), service("network", "network")],
        } })
    }

    fn network(&mut self, method: &str, path: &[&str], body: &Value) -> Option<Answer> {
        match (method, path) {
            ("GET", ["extensions"]) => Some(Answer::ok(json!({ "extensions": [] }))),
            // Which are asked for, by name, does not matter: there is one machine.
            ("GET", ["ports"]) => {
                let ports = &self.ports;
                Some(Answer::ok(json!({ "ports": ports })))
            }
            ("POST", ["ports"]) => {
                let port = &body["port"];
                let port = json!({
                    "id": format!("port-{}", self.ports.len() + 1),
                    "name": port["name"],
                    "network_id": port["network_id"],
                    "admin_state_up": true,
                    "status": "ACTIVE",
                });
                self.ports.push(port.clone());
                Some(Answer::new(StatusCode::CREATED, json!({ "port": port })))
            }
            ("DELETE", ["ports", id]) => {
                self.ports.retain(|one| one["id"] != *id);
                Some(Answer::empty())
            }
            _ => None,
        }
    }

    fn compute(&mut self, method: &str, path: &[&str], body: &Value) -> Option<Answer> {
        match (method, path) {
            ("GET", []) => Some(Answer::ok(json!({ "version": {
                "id": "v2.1",
                "status": "CURRENT",
                "version": "2.96",
                "min_version": "2.1",
            } }))),
            ("GET", ["servers", "detail"]) => {
                let servers = &self.servers;
                Some(Answer::ok(json!({ "servers": servers })))
            }
            ("POST", ["servers"]) => {
                let server = server(body["server"]["name"].as_str()?);
                self.servers.push(server.clone());
                let body = json!({ "server": server });
                Some(Answer::new(StatusCode::ACCEPTED, body))
            }
            ("GET", ["servers", id]) => {
                let mut all = self.servers.iter();
                let found = all.find(|one| one["id"] == *id);
                Some(Answer::found(
                    found.map(|server| json!({ "server": server })),
                ))
            }
            ("DELETE", ["servers", id]) => {
                self.servers.retain(|one| one["id"] != *id);
                Some(Answer::empty())
            }
            _ => None,
        }
    }
}

fn server(name: &str) -> Value {
    json!({
        "id": format!("server-{name}"),
        "name": name,
        "status": "ACTIVE",
        "addresses": { "testbed": [
            { "version": 4, "addr": "10.0.0.2", "OS-EXT-IPS:type": "fixed" },
        ] },
        "flavor": { "id": "m1.large" },
        "image": { "id": "rhcos" },
        "metadata": {},
    })
}
