//! Workspaces of Power VS: DHCP servers.

use serde_json::{Value, json};
use support::rest::Request;

use super::{Change, IbmCloud, Kind, absent, conflict, refused, unknown};
use crate::Answer;

/// What is answered when the service takes too long.
const TIMEOUT: u16 = 524;

impl IbmCloud {
    pub(super) fn power(&mut self, request: &Request, parts: &[&str], region: &str) -> Answer {
        let ["pcloud", "v1", "cloud-instances", workspace, rest @ ..] = parts else {
            return unknown();
        };
        let instance = self.get(Kind::Instance, workspace);
        let Some(instance) = instance.filter(|it| it["state"] == "active") else {
            return absent();
        };
        let zone = instance["region_id"].as_str().unwrap_or_default();
        if !zone.starts_with(region)
            || request.headers.get("crn").map(String::as_str) != instance["crn"].as_str()
        {
            return refused(403, "wrong_workspace");
        }
        let of_it = |it: &Value| it["workspace"] == *workspace;
        match (request.method.as_str(), rest) {
            ("GET", ["services", "dhcp"]) => {
                let found: Vec<_> = self.all(Kind::DhcpServer).filter(|it| of_it(it)).collect();
                Answer::ok(json!(found))
            }
            ("GET", ["services", "dhcp", id]) => {
                if self.timeouts > 0 {
                    self.timeouts -= 1;
                    return refused(TIMEOUT, "timeout");
                }
                self.one(Kind::DhcpServer, id)
            }
            ("POST", ["services", "dhcp"]) => {
                // One for each workspace.
                if self.all(Kind::DhcpServer).any(of_it) {
                    return conflict();
                }
                let id = self.add_dhcp_server(workspace, request.body["name"].as_str());
                self.set(
                    Kind::DhcpServer,
                    &id,
                    "dns",
                    request.body["dnsServer"].clone(),
                );
                self.set(Kind::DhcpServer, &id, "status", json!("BUILD"));
                self.set(Kind::DhcpServer, &id, "network", Value::Null);
                self.later(Kind::DhcpServer, &id, Change::Set("status", "ACTIVE"));
                Answer {
                    status: 202,
                    ..self.one(Kind::DhcpServer, &id)
                }
            }
            ("DELETE", ["services", "dhcp", id]) => {
                self.deleted_later(Kind::DhcpServer, id, "status")
            }
            ("GET", ["pvm-instances", id]) => self.one(Kind::DhcpServer, id),
            _ => unknown(),
        }
    }

    /// Adds a DHCP server that is active, and returns its identifier.
    pub fn add_dhcp_server(&mut self, workspace: &str, name: Option<&str>) -> String {
        let server = json!({ "workspace": workspace, "name": name, "status": "ACTIVE" });
        let id = self.add(Kind::DhcpServer, server);
        self.finish_dhcp();
        id
    }

    /// A server that has become active has a network.
    pub(super) fn finish_dhcp(&mut self) {
        let is_new = |it: &Value| it["status"] == "ACTIVE" && it["network"].is_null();
        for id in self.ids(Kind::DhcpServer, is_new) {
            let server = self.get(Kind::DhcpServer, &id);
            let name = server
                .and_then(|it| it["name"].as_str())
                .unwrap_or_default();
            let network = json!({
                "id": format!("network-of-{id}"),
                "name": format!("DHCPSERVER{name}_Private"),
            });
            self.set(Kind::DhcpServer, &id, "network", network);
        }
    }
}
