//! A fake of Google Cloud's networks: forwarding rules, service attachments, addresses, and zones of Cloud DNS.
//!
//! Writes of Compute Engine are operations that take one step of time. Resources are kept by their full names.

use std::collections::BTreeMap;

use http::Method;
use serde_json::{Value, json};
use support::google_resources::{full_name, name_of};
use support::rest::Request;

use crate::{Answer, Cloud};

/// Parts of a path: of a list of resources of a region, and of a resource.
const LIST: usize = 7;
const ITEM: usize = 8;

/// The cloud.
#[derive(Debug, Default)]
pub struct GoogleNetworks {
    /// Resources of Compute Engine, and zones, by their full names.
    resources: BTreeMap<String, Value>,
    /// Sets of records by zone, name and type.
    records: BTreeMap<[String; 3], Value>,
    /// Operations that are under way, by name.
    operations: BTreeMap<String, bool>,
    created: usize,
}

// === impl GoogleNetworks ===

impl GoogleNetworks {
    /// Adds a resource that someone else has made.
    pub fn add(&mut self, name: &str, resource: Value) {
        self.store(name, resource);
    }

    /// Removes a resource, as if someone else had.
    pub fn remove(&mut self, name: &str) {
        self.resources.remove(name);
    }

    /// A resource.
    pub fn get(&self, name: &str) -> Option<Value> {
        self.resources.get(name).cloned()
    }

    /// Replaces a field of a resource, as if someone else had.
    pub fn edit(&mut self, name: &str, field: &str, value: Value) {
        if let Some(found) = self.resources.get_mut(name) {
            found[field] = value;
        }
    }

    /// The records of all zones, as `zone name type value`.
    pub fn records(&self) -> Vec<String> {
        let all = self.records.iter();
        all.map(|([zone, name, type_], it)| {
            let value = it["rrdatas"][0].as_str().unwrap_or_default();
            format!("{zone} {name} {type_} {value}")
        })
        .collect()
    }

    fn store(&mut self, name: &str, mut resource: Value) {
        resource["name"] = json!(name_of(name));
        resource["selfLink"] = json!(format!("https://www.googleapis.com/compute/v1/{name}"));
        self.created += 1;
        resource["fingerprint"] = json!(format!("f{}", self.created));
        self.resources.insert(name.to_owned(), resource);
    }

    fn operation(&mut self) -> Answer {
        self.created += 1;
        let name = format!("operation-{}", self.created);
        self.operations.insert(name.clone(), false);
        Answer::ok(json!({ "name": name, "status": "RUNNING" }))
    }

    fn compute(&mut self, path: &str, request: &Request) -> Answer {
        let name = full_name(path).to_owned();
        let kind = path.split('/').nth(LIST - 1).unwrap_or_default().to_owned();
        let parts = path.split('/').count();
        match request.method {
            Method::GET if kind == "operations" => {
                let is_done = self.operations.get(name_of(&name)).copied();
                let status = if is_done == Some(true) {
                    "DONE"
                } else {
                    "RUNNING"
                };
                Answer::ok(json!({ "name": name_of(&name), "status": status }))
            }
            Method::GET if parts == LIST => self.list(&name, request),
            Method::GET if parts == ITEM => match self.resources.get(&name) {
                Some(found) => Answer::ok(found.clone()),
                None => absent(&name),
            },
            Method::POST => self.insert(&name, &kind, request.body.clone()),
            Method::PATCH => self.patch(&name, &request.body),
            Method::DELETE => self.delete(&name, &kind),
            _ => Answer::refused(405, "NOT_ALLOWED", "no such call"),
        }
    }

    fn list(&self, kind: &str, request: &Request) -> Answer {
        let prefix = format!("{kind}/");
        let filter = request.parameter("filter").unwrap_or_default();
        let address = filter.split('"').nth(1);
        let all = self.resources.iter();
        let items = all
            .filter(|(name, _)| name.starts_with(&prefix))
            .filter(|(_, it)| address.is_none_or(|address| it["IPAddress"] == address))
            .map(|(_, it)| it.clone());
        Answer::ok(json!({ "items": items.collect::<Vec<_>>() }))
    }

    fn insert(&mut self, prefix: &str, kind: &str, mut body: Value) -> Answer {
        let name = format!("{prefix}/{}", body["name"].as_str().unwrap_or_default());
        if self.resources.contains_key(&name) {
            return Answer::refused(409, "ALREADY_EXISTS", &name);
        }
        match kind {
            "serviceAttachments" => {
                if self.find(&body["targetService"]).is_none() {
                    return Answer::refused(400, "INVALID_ARGUMENT", "no such forwarding rule");
                }
                let attachments = self.resources.iter();
                let mut attachments =
                    attachments.filter(|(it, _)| it.contains("/serviceAttachments/"));
                if attachments.any(|(_, it)| it["natSubnets"] == body["natSubnets"]) {
                    return Answer::refused(400, "RESOURCE_IN_USE", "the subnet is in use");
                }
            }
            "addresses" => {
                self.created += 1;
                body["address"] = json!(format!("10.9.0.{}", self.created));
            }
            "forwardingRules" => {
                let Some(attachment) = self.find(&body["target"]) else {
                    return Answer::refused(400, "INVALID_ARGUMENT", "no such service attachment");
                };
                let project = prefix.split('/').nth(1).unwrap_or_default();
                let accepted = attachment["consumerAcceptLists"].as_array();
                let mut accepted = accepted.into_iter().flatten();
                let is_accepted = accepted.any(|it| it["projectIdOrNum"] == project);
                let status = if is_accepted { "ACCEPTED" } else { "PENDING" };
                body["pscConnectionStatus"] = json!(status);
                let address = self.find(&body["IPAddress"]);
                body["IPAddress"] = address.map_or(Value::Null, |it| it["address"].clone());
            }
            _ => {}
        }
        self.store(&name, body);
        self.operation()
    }

    fn find(&self, url: &Value) -> Option<&Value> {
        self.resources.get(full_name(url.as_str()?))
    }

    fn patch(&mut self, name: &str, change: &Value) -> Answer {
        let Some(found) = self.resources.get(name) else {
            return absent(name);
        };
        if found["fingerprint"] != change["fingerprint"] {
            return Answer::refused(412, "CONDITION_NOT_MET", "another fingerprint");
        }
        let mut patched = found.clone();
        for (field, value) in change.as_object().into_iter().flatten() {
            patched[field.as_str()] = value.clone();
        }
        self.store(name, patched);
        self.operation()
    }

    fn delete(&mut self, name: &str, kind: &str) -> Answer {
        let Some(found) = self.resources.get(name) else {
            return absent(name);
        };
        let mut others = self.resources.values();
        if kind == "addresses" && others.any(|it| it["IPAddress"] == found["address"]) {
            return Answer::refused(400, "RESOURCE_IN_USE", "a forwarding rule has it");
        }
        self.resources.remove(name);
        self.operation()
    }

    fn dns(&mut self, path: &str, request: &Request) -> Answer {
        let rest = path
            .split_once("/managedZones")
            .map_or("", |(_, rest)| rest);
        let rest = rest.trim_start_matches('/');
        let (zone, part) = rest.split_once('/').unwrap_or((rest, ""));
        let name = full_name(path.trim_end_matches(&format!("/{part}"))).to_owned();
        match (request.method.as_str(), part) {
            ("POST", "") => {
                let name = format!(
                    "{name}/{}",
                    request.body["name"].as_str().unwrap_or_default()
                );
                if self.resources.contains_key(&name) {
                    return Answer::refused(409, "alreadyExists", &name);
                }
                let mut zone = request.body.clone();
                zone["nameServers"] = json!([
                    "ns-cloud-a1.googledomains.com.",
                    "ns-cloud-a2.googledomains.com."
                ]);
                self.store(&name, zone);
                Answer::ok(self.resources[&name].clone())
            }
            ("GET", "") => match self.resources.get(&name) {
                Some(found) => Answer::ok(found.clone()),
                None => absent(&name),
            },
            ("DELETE", "") => {
                if self.records.keys().any(|[of, ..]| of == zone) {
                    return Answer::refused(400, "containerNotEmpty", "it has records");
                }
                match self.resources.remove(&name) {
                    Some(_) => Answer::empty(204),
                    None => absent(&name),
                }
            }
            (_, _) if !self.resources.contains_key(&name) => absent(&name),
            ("GET", "rrsets") => {
                let own = self.records.iter().filter(|([of, ..], _)| of == zone);
                let mut found: Vec<_> = own.map(|(_, it)| it.clone()).collect();
                found.push(json!({ "name": "x.", "type": "SOA", "ttl": 1, "rrdatas": ["x"] }));
                Answer::ok(json!({ "rrsets": found }))
            }
            ("POST", "changes") => self.change(zone, &request.body),
            _ => Answer::refused(405, "NOT_ALLOWED", "no such call"),
        }
    }

    fn change(&mut self, zone: &str, body: &Value) -> Answer {
        let key = |it: &Value| {
            let text = |field: &str| it[field].as_str().unwrap_or_default().to_owned();
            [zone.to_owned(), text("name"), text("type")]
        };
        let list = |field: &str| body[field].as_array().cloned().unwrap_or_default();
        let mut records = self.records.clone();
        for deleted in list("deletions") {
            if records.remove(&key(&deleted)) != Some(deleted) {
                return Answer::refused(412, "conditionNotMet", "no such record");
            }
        }
        for added in list("additions") {
            if records.insert(key(&added), added).is_some() {
                return Answer::refused(409, "alreadyExists", "the record is there");
            }
        }
        self.records = records;
        Answer::ok(json!({ "status": "done" }))
    }
}

impl Cloud for GoogleNetworks {
    fn answer(&mut self, request: &Request) -> Answer {
        let path = request.path().to_owned();
        match request.host() {
            // What is counted begins with the version, as for Cloud DNS.
            "compute.googleapis.com" => self.compute(path.trim_start_matches("/compute"), request),
            "dns.googleapis.com" => self.dns(&path, request),
            _ => Answer::refused(404, "NOT_FOUND", "no such host"),
        }
    }

    fn pass_time(&mut self) {
        for is_done in self.operations.values_mut() {
            *is_done = true;
        }
    }

    fn snapshot(&self) -> Vec<String> {
        let resources = self.resources.iter();
        let resources = resources.map(|(name, it)| format!("{name} {it}"));
        resources.chain(self.records()).collect()
    }
}

fn absent(name: &str) -> Answer {
    Answer::refused(404, "NOT_FOUND", name)
}
