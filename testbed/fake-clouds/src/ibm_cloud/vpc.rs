//! VPCs of a region: security group rules, address prefixes, subnets, load balancers.

use serde_json::{Value, json};
use support::rest::Request;

use super::{ACCOUNT, Change, IbmCloud, Kind, absent, conflict, refused, unknown};
use crate::Answer;

/// Zones of each region.
const ZONES: [&str; 3] = ["1", "2", "3"];

impl IbmCloud {
    pub(super) fn vpcs(&mut self, request: &Request, parts: &[&str], region: &str) -> Answer {
        let versioned = request.parameter("version").is_some();
        if !versioned || request.parameter("generation").as_deref() != Some("2") {
            return refused(400, "missing_version");
        }
        let body = &request.body;
        let here = |it: &Value| it["region"] == region;
        match (request.method.as_str(), parts) {
            ("GET", ["v1", "vpcs"]) => self.list(Kind::Vpc, "vpcs", |it| {
                let asked = request.parameter("resource_group.id");
                here(it) && asked.is_none_or(|asked| it["resource_group"]["id"] == asked)
            }),
            ("GET", ["v1", "vpcs", id]) => self.one(Kind::Vpc, id),
            ("POST", ["v1", "vpcs"]) => self.create_vpc(body, region),
            ("DELETE", ["v1", "vpcs", id]) => self.delete_vpc(id),
            ("GET", ["v1", "vpcs", id, "address_prefixes"]) => {
                self.list(Kind::Prefix, "address_prefixes", |it| {
                    it["vpc"]["id"] == *id
                })
            }
            ("GET", ["v1", "security_groups", id, "rules"]) => {
                self.list(Kind::Rule, "rules", |it| it["group"] == *id)
            }
            ("POST", ["v1", "security_groups", id, "rules"]) => {
                let mut rule = body.clone();
                rule["group"] = json!(id);
                self.created(Kind::Rule, rule)
            }
            ("GET", ["v1", "subnets"]) => self.list(Kind::Subnet, "subnets", |it| {
                let asked = request.parameter("vpc.id");
                here(it) && asked.is_none_or(|asked| it["vpc"]["id"] == asked)
            }),
            ("GET", ["v1", "subnets", id]) => self.one(Kind::Subnet, id),
            ("POST", ["v1", "subnets"]) => self.create_subnet(body, region),
            ("DELETE", ["v1", "subnets", id]) => self.delete_subnet(id),
            ("GET", ["v1", "load_balancers"]) => {
                self.list(Kind::LoadBalancer, "load_balancers", here)
            }
            ("GET", ["v1", "load_balancers", id]) => self.one(Kind::LoadBalancer, id),
            ("DELETE", ["v1", "load_balancers", id]) => {
                self.deleted_later(Kind::LoadBalancer, id, "provisioning_status")
            }
            _ => unknown(),
        }
    }

    /// Adds a VPC that is available, and returns its identifier.
    pub fn add_vpc(&mut self, name: &str, region: &str, group: &str) -> String {
        let id = self.add(
            Kind::Vpc,
            json!({
                "name": name,
                "region": region,
                "resource_group": { "id": group },
                "status": "available",
            }),
        );
        let crn = format!("crn:v1:bluemix:public:is:{region}:a/{ACCOUNT}::vpc:{id}");
        self.set(Kind::Vpc, &id, "crn", json!(crn));
        let security_group = json!({ "id": format!("sg-of-{id}") });
        self.set(Kind::Vpc, &id, "default_security_group", security_group);
        for (index, zone) in ZONES.into_iter().enumerate() {
            let prefix = json!({
                "name": format!("prefix-{zone}"),
                "cidr": format!("10.240.{}.0/18", 64 * index),
                "zone": { "name": format!("{region}-{zone}") },
                "vpc": { "id": id },
            });
            self.add(Kind::Prefix, prefix);
        }
        id
    }

    /// Adds a rule to the default security group of a VPC.
    pub fn add_rule(&mut self, vpc: &str, port: u16) {
        let rule = json!({
            "direction": "inbound",
            "protocol": "tcp",
            "port_min": port,
            "port_max": port,
            "remote": { "cidr_block": "0.0.0.0/0" },
            "group": format!("sg-of-{vpc}"),
        });
        self.add(Kind::Rule, rule);
    }

    /// Adds a subnet that is available, and returns its identifier.
    pub fn add_subnet(&mut self, name: &str, vpc: &str, region: &str) -> String {
        let subnet = json!({
            "name": name,
            "region": region,
            "vpc": { "id": vpc },
            "zone": { "name": format!("{region}-1") },
            "status": "available",
        });
        self.add(Kind::Subnet, subnet)
    }

    /// Adds a load balancer on a subnet, and returns its host name.
    pub fn add_load_balancer(&mut self, name: &str, subnet: &str, region: &str) -> String {
        let host = format!("{}-{region}.lb.appdomain.cloud", self.next);
        let balancer = json!({
            "name": name,
            "region": region,
            "hostname": host,
            "subnets": [{ "id": subnet }],
            "provisioning_status": "active",
        });
        self.add(Kind::LoadBalancer, balancer);
        host
    }

    fn created(&mut self, kind: Kind, value: Value) -> Answer {
        let id = self.add(kind, value);
        Answer {
            status: 201,
            ..self.one(kind, &id)
        }
    }

    fn create_vpc(&mut self, body: &Value, region: &str) -> Answer {
        let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str);
        let (Some(name), Some(group)) = (text("/name"), text("/resource_group/id")) else {
            return refused(400, "invalid_request");
        };
        let is_taken = |it: &Value| it["name"] == name && it["region"] == region;
        if self.all(Kind::Vpc).any(is_taken) {
            return refused(400, "validation_unique_failed");
        }
        let id = self.add_vpc(name, region, group);
        self.set(Kind::Vpc, &id, "status", json!("pending"));
        self.later(Kind::Vpc, &id, Change::Set("status", "available"));
        Answer {
            status: 201,
            ..self.one(Kind::Vpc, &id)
        }
    }

    fn delete_vpc(&mut self, id: &str) -> Answer {
        let Some(vpc) = self.get(Kind::Vpc, id) else {
            return absent();
        };
        let crn = vpc["crn"].clone();
        let is_connected = self.all(Kind::Connection).any(|it| it["network_id"] == crn);
        if is_connected || self.all(Kind::Subnet).any(|it| it["vpc"]["id"] == id) {
            return conflict();
        }
        let group = format!("sg-of-{id}");
        for rule in self.ids(Kind::Rule, |it| it["group"] == group) {
            self.remove(Kind::Rule, &rule);
        }
        for prefix in self.ids(Kind::Prefix, |it| it["vpc"]["id"] == id) {
            self.remove(Kind::Prefix, &prefix);
        }
        self.deleted_later(Kind::Vpc, id, "status")
    }

    /// The first zone has no room.
    fn create_subnet(&mut self, body: &Value, region: &str) -> Answer {
        let vpc = body["vpc"]["id"].as_str().unwrap_or_default();
        let vpc = self.get(Kind::Vpc, vpc);
        if vpc.is_none_or(|vpc| vpc["status"] != "available") {
            return refused(400, "vpc_not_available");
        }
        if body["zone"]["name"] == format!("{region}-1") {
            return refused(400, "over_quota");
        }
        let is_taken = |it: &Value| it["name"] == body["name"] && it["vpc"] == body["vpc"];
        if self.all(Kind::Subnet).any(is_taken) {
            return refused(400, "validation_unique_failed");
        }
        let mut subnet = body.clone();
        subnet["region"] = json!(region);
        subnet["status"] = json!("pending");
        let answer = self.created(Kind::Subnet, subnet);
        let id = answer.body["id"].as_str().unwrap_or_default().to_owned();
        self.later(Kind::Subnet, &id, Change::Set("status", "available"));
        answer
    }

    fn delete_subnet(&mut self, id: &str) -> Answer {
        let is_on = |it: &Value| {
            let subnets = it["subnets"].as_array();
            subnets.is_some_and(|subnets| subnets.iter().any(|it| it["id"] == id))
        };
        if self.all(Kind::LoadBalancer).any(is_on) {
            return conflict();
        }
        self.deleted_later(Kind::Subnet, id, "status")
    }

    /// Begins a deletion.
    pub(super) fn deleted_later(&mut self, kind: Kind, id: &str, field: &str) -> Answer {
        if self.get(kind, id).is_none() {
            return absent();
        }
        self.set(kind, id, field, json!("deleting"));
        self.later(kind, id, Change::Remove);
        Answer::empty(202)
    }
}
