//! A fake of Azure's networks: internal load balancers, private link services, private endpoints and private DNS zones.
//!
//! Writes take one step of time. Resources are kept by their IDs in lower case, and parts of resources are resources as well.

use std::collections::{BTreeMap, BTreeSet};

use http::Method;
use serde_json::{Value, json};
use support::rest::Request;

use crate::{Answer, Cloud};

/// Parts of an ID: of a list of resources, of a resource, of a list of its parts, of a part, and of a record.
const LIST: usize = 8;
const PART: usize = 10;
/// The kinds that private links consist of.
const SERVICES: &str = "/privatelinkservices/";
const CONNECTIONS: &str = "/privateendpointconnections/";
const LINKS: &str = "/virtualnetworklinks/";

/// The cloud.
#[derive(Debug, Default)]
pub struct AzureNetworks {
    resources: BTreeMap<String, Value>,
    deleted: BTreeSet<String>,
    created: usize,
    /// Whether rejected connections hold up the deletion of their private link service, too.
    pub keeps_rejected: bool,
}

// === impl AzureNetworks ===

impl AzureNetworks {
    /// Adds a resource that someone else has made.
    pub fn add(&mut self, id: &str, resource: Value) {
        self.store(id, resource, "Succeeded");
    }

    /// Removes a resource, as if someone else had.
    pub fn remove(&mut self, id: &str) {
        self.resources.remove(&key(id));
    }

    /// A resource as it is returned.
    pub fn get(&self, id: &str) -> Option<Value> {
        self.view(&key(id))
    }

    /// Replaces a field of a resource, as if someone else had.
    pub fn edit(&mut self, id: &str, pointer: &str, value: Value) {
        if let Some(found) = self
            .resources
            .get_mut(&key(id))
            .and_then(|it| it.pointer_mut(pointer))
        {
            *found = value;
        }
    }

    fn store(&mut self, id: &str, mut resource: Value, state: &str) {
        resource["id"] = json!(id);
        resource["name"] = json!(id.rsplit('/').next());
        resource["properties"]["provisioningState"] = json!(state);
        self.deleted.remove(&key(id));
        self.resources.insert(key(id), resource);
    }

    /// The resources whose IDs begin with this.
    fn below(&self, prefix: &str) -> Vec<(&String, &Value)> {
        let all = self.resources.range(prefix.to_owned()..);
        all.take_while(|(id, _)| id.starts_with(prefix)).collect()
    }

    /// The parts of a resource, as they are returned with it.
    fn parts(&self, id: &str, kind: &str) -> Vec<Value> {
        let prefix = format!("{id}/{kind}/");
        let found = self.below(&prefix);
        found.into_iter().map(|(_, it)| it.clone()).collect()
    }

    fn view(&self, id: &str) -> Option<Value> {
        let mut found = self.resources.get(id)?.clone();
        if id.contains("/virtualnetworks/") && !id.contains("/subnets/") {
            found["properties"]["subnets"] = json!(self.parts(id, "subnets"));
        }
        if id.contains(SERVICES) && !id.contains(CONNECTIONS) {
            let connections = self.parts(id, "privateendpointconnections");
            found["properties"]["privateEndpointConnections"] = json!(connections);
        }
        if id.contains("/privateendpoints/") {
            let connection = found["connection"].as_str().unwrap_or_default();
            let live = self.resources.get(connection);
            let state =
                live.map(|it| it["properties"]["privateLinkServiceConnectionState"].clone());
            let state = state.unwrap_or_else(|| json!({ "status": "Disconnected" }));
            found["properties"]["manualPrivateLinkServiceConnections"][0]["properties"]["privateLinkServiceConnectionState"] =
                state;
        }
        if let Some(fields) = found.as_object_mut() {
            fields.remove("connection");
        }
        Some(found)
    }

    fn list(&self, path: &str) -> Answer {
        let path = key(path);
        // All sets of records of a zone.
        let (prefix, is_records) = match path.strip_suffix("all") {
            Some(zone) if zone.contains("/privatednszones/") => (zone.to_owned(), true),
            Some(_) | None => (format!("{path}/"), false),
        };
        let depth = prefix.matches('/').count() + usize::from(is_records);
        let ids = self.below(&prefix).into_iter().map(|(id, _)| id);
        let items = ids
            .filter(|id| id.matches('/').count() == depth)
            .filter(|id| !is_records || !id.contains(LINKS))
            .filter_map(|id| self.view(id));
        Answer::ok(json!({ "value": items.collect::<Vec<_>>() }))
    }

    fn put(&mut self, id: &str, mut body: Value) -> Answer {
        let known = self.resources.contains_key(&key(id));
        if let Some(refused) = self.problem(id, &body) {
            return refused;
        }
        let lower = key(id);
        if lower.contains(CONNECTIONS) {
            let Some(connection) = self.resources.get_mut(&lower) else {
                return absent(id);
            };
            let state = &body["properties"]["privateLinkServiceConnectionState"];
            connection["properties"]["privateLinkServiceConnectionState"] = state.clone();
            return Answer::ok(connection.clone());
        }
        if lower.contains(SERVICES) {
            let name = id.rsplit('/').next().unwrap_or_default();
            let alias = format!(
                "{name}.00000000-0000-0000-0000-000000000000.eastus.azure.privatelinkservice"
            );
            body["properties"]["alias"] = json!(alias);
        }
        if lower.contains("/privateendpoints/") {
            match self.resources.get(&lower) {
                Some(before) => {
                    body["connection"] = before["connection"].clone();
                    let interfaces = before["properties"]["networkInterfaces"].clone();
                    body["properties"]["networkInterfaces"] = interfaces;
                }
                None => self.connect(id, &mut body),
            }
        }
        self.store(id, body, "Updating");
        if lower.contains("/privatednszones/") {
            // It may be accepted without saying what it becomes.
            return Answer::empty(202);
        }
        let status = if known { 200 } else { 201 };
        Answer::new(status, self.view(&lower).unwrap_or_default())
    }

    /// Connects an endpoint to its private link service, with an interface that has an address.
    fn connect(&mut self, id: &str, body: &mut Value) {
        self.created += 1;
        let number = self.created;
        let wanted = &body["properties"]["manualPrivateLinkServiceConnections"][0]["properties"];
        let alias = wanted["privateLinkServiceId"].clone();
        let subscription = id.split('/').nth(2).unwrap_or_default().to_owned();
        let service = self
            .resources
            .iter()
            .find(|(other, it)| other.contains(SERVICES) && it["properties"]["alias"] == alias);
        if let Some((service, found)) = service {
            let approved = found["properties"]["autoApproval"]["subscriptions"].as_array();
            let approved = approved.into_iter().flatten();
            let is_approved = approved
                .filter_map(Value::as_str)
                .any(|it| it == subscription);
            let state = if is_approved { "Approved" } else { "Pending" };
            let name = id.rsplit('/').next().unwrap_or_default();
            let connection = format!("{service}{CONNECTIONS}{name}.{number}");
            body["connection"] = json!(connection);
            let properties = json!({ "privateLinkServiceConnectionState": { "status": state } });
            self.add(&connection, json!({ "properties": properties }));
        }
        let interface = format!(
            "{}.nic.{number}",
            id.replace("privateEndpoints", "networkInterfaces")
        );
        body["properties"]["networkInterfaces"] = json!([{ "id": interface }]);
        let address =
            json!({ "properties": { "privateIPAddress": format!("10.1.0.{}", 10 + number) } });
        self.add(
            &interface,
            json!({ "properties": { "ipConfigurations": [address] } }),
        );
    }

    /// Why Azure refuses a write.
    fn problem(&self, id: &str, body: &Value) -> Option<Answer> {
        let bad = |code: &str| Some(Answer::refused(400, code, "a fake refuses it"));
        let lower = key(id);
        let properties = &body["properties"];
        if let Some((network, _)) = lower.split_once("/subnets/") {
            let range = &properties["addressPrefix"];
            let others = self.below(&format!("{network}/subnets/"));
            let mut others = others.into_iter().filter(|(other, _)| **other != lower);
            let overlaps = others.any(|(_, it)| it["properties"]["addressPrefix"] == *range);
            return if overlaps {
                bad("NetcfgInvalidSubnet")
            } else {
                None
            };
        }
        if lower.contains(SERVICES) && !lower.contains(CONNECTIONS) {
            let subnet = &properties["ipConfigurations"][0]["properties"]["subnet"]["id"];
            let subnet = self
                .resources
                .get(&key(subnet.as_str().unwrap_or_default()));
            let policies =
                |it: &Value| it["properties"]["privateLinkServiceNetworkPolicies"].clone();
            if subnet.map(policies) != Some(json!("Disabled")) {
                return bad("PrivateLinkServiceNetworkPoliciesEnabled");
            }
            let frontend = &properties["loadBalancerFrontendIpConfigurations"];
            let services = self.resources.iter().filter(|(other, _)| {
                other.contains(SERVICES) && !other.contains(CONNECTIONS) && **other != lower
            });
            let mut used =
                services.map(|(_, it)| &it["properties"]["loadBalancerFrontendIpConfigurations"]);
            if used.any(|it| it == frontend) {
                return bad("FrontendIpConfigurationInUse");
            }
        }
        if let Some((zone, _)) = lower.split_once(LINKS) {
            let network = &properties["virtualNetwork"]["id"];
            let name = zone.rsplit('/').next().unwrap_or_default();
            let mut links = self.resources.iter().filter(|(other, it)| {
                let linked = other.split_once(LINKS).map_or("", |(zone, _)| zone);
                **other != lower
                    && linked.ends_with(&format!("/{name}"))
                    && it["properties"]["virtualNetwork"]["id"] == *network
            });
            if links.next().is_some() {
                return Some(Answer::refused(
                    409,
                    "Conflict",
                    "the network is linked to another zone",
                ));
            }
        }
        if lower.contains("/privatednszones/") && lower.matches('/').count() > LIST {
            let zone: Vec<_> = lower.split('/').take(LIST + 1).collect();
            if !self.resources.contains_key(&zone.join("/")) {
                return Some(absent(id));
            }
        }
        None
    }

    fn delete(&mut self, id: &str) -> Answer {
        let lower = key(id);
        let Some(found) = self.view(&lower) else {
            return Answer::empty(204);
        };
        let bad = |code: &str| Answer::refused(400, code, "a fake refuses it");
        if lower.contains(SERVICES) && !lower.contains(CONNECTIONS) {
            let connections = found["properties"]["privateEndpointConnections"].as_array();
            let mut connections = connections.into_iter().flatten();
            let holds_up = |it: &Value| {
                let state = &it["properties"]["privateLinkServiceConnectionState"]["status"];
                self.keeps_rejected || *state != "Rejected"
            };
            if connections.any(holds_up) {
                return bad("PrivateLinkServiceWithPrivateEndpointConnectionsCannotBeDeleted");
            }
        }
        if lower.contains("/subnets/") {
            let mut users = self.resources.iter().filter(|(other, it)| {
                **other != lower && key(&it.to_string()).contains(&format!("\"{lower}\""))
            });
            if users.next().is_some() {
                return bad("InUseSubnetCannotBeDeleted");
            }
        }
        if lower.contains("/privatednszones/") && !self.below(&format!("{lower}{LINKS}")).is_empty()
        {
            return Answer::refused(409, "CannotDeleteResource", "it has links");
        }
        self.deleted.insert(lower);
        Answer::empty(202)
    }

    fn finish_deletion(&mut self, id: &str) {
        let Some(found) = self.resources.remove(id) else {
            return;
        };
        // Records go with their zone, and the interface and the connection with their endpoint.
        self.resources
            .retain(|other, _| !other.starts_with(&format!("{id}/")));
        let interface = &found["properties"]["networkInterfaces"][0]["id"];
        let others = [found["connection"].as_str(), interface.as_str()];
        for other in others.into_iter().flatten() {
            self.resources.remove(&key(other));
        }
    }
}

impl Cloud for AzureNetworks {
    fn answer(&mut self, request: &Request) -> Answer {
        if request.parameter("api-version").is_none() {
            return Answer::refused(400, "MissingApiVersionParameter", "no version");
        }
        let path = request.path().to_owned();
        let parts = path.split('/').count();
        match request.method {
            Method::GET if parts == LIST || parts == PART => self.list(&path),
            Method::GET => match self.view(&key(&path)) {
                Some(found) => Answer::ok(found),
                None => absent(&path),
            },
            Method::PUT => self.put(&path, request.body.clone()),
            Method::DELETE => self.delete(&path),
            _ => Answer::refused(405, "MethodNotAllowed", "no such call"),
        }
    }

    fn pass_time(&mut self) {
        for id in std::mem::take(&mut self.deleted) {
            self.finish_deletion(&id);
        }
        for resource in self.resources.values_mut() {
            let state = &mut resource["properties"]["provisioningState"];
            if *state == "Updating" {
                *state = json!("Succeeded");
            }
        }
    }

    fn snapshot(&self) -> Vec<String> {
        let ids = self.resources.keys();
        ids.filter_map(|id| Some(format!("{id} {}", self.view(id)?)))
            .collect()
    }
}

fn key(id: &str) -> String {
    id.to_ascii_lowercase()
}

fn absent(id: &str) -> Answer {
    Answer::refused(404, "ResourceNotFound", id)
}
