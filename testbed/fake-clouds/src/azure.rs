//! Azure Resource Manager and Microsoft Graph.
//!
//! All resources are in one map, by their IDs in lower case: a PUT creates or replaces, as it does there. What takes time in
//! Azure takes it here, in steps of [`Cloud::pass_time`], and is reported by operations.

mod authorization;
mod lists;
mod operation;
mod path;

use std::collections::BTreeMap;

use http::Method;
use serde_json::{Value, json};
use support::rest::Request;

use crate::{Answer, Cloud};
use operation::{Effect, Operation};
use path::{Path, Target};

/// Azure Resource Manager of the public cloud.
pub const MANAGEMENT: &str = "management.azure.com";
/// Microsoft Graph of the public cloud.
pub const GRAPH: &str = "graph.microsoft.com";

/// Subscriptions and the directory of their tenant.
#[derive(Debug, Default)]
pub struct Azure {
    /// Documents of resources, by their IDs in lower case.
    resources: BTreeMap<String, Value>,
    operations: BTreeMap<usize, Operation>,
    /// Service principals, by the client IDs of their applications.
    principals: BTreeMap<String, Principal>,
    /// Role definitions that are found by their names.
    roles: BTreeMap<String, String>,
    /// How many of the next PUTs of a type are refused because of another operation.
    busy: BTreeMap<String, u32>,
}

/// A service principal.
#[derive(Debug, Clone)]
struct Principal {
    object: String,
    /// The identity that it stands for.
    identity: Option<String>,
    /// Steps since it was created: the directory does not show it at once.
    age: u32,
}

// === impl Azure ===

impl Azure {
    /// With a resource that exists.
    #[must_use]
    pub fn with(mut self, id: &str, body: Value) -> Self {
        self.insert(id, body);
        self
    }

    /// With a service principal that exists.
    #[must_use]
    pub fn with_principal(mut self, client: &str, object: &str) -> Self {
        let principal = Principal {
            object: object.to_owned(),
            identity: None,
            age: 1,
        };
        self.principals.insert(client.to_owned(), principal);
        self
    }

    /// With a role definition that is found by its name.
    #[must_use]
    pub fn with_role(mut self, name: &str, id: &str) -> Self {
        self.roles.insert(name.to_owned(), id.to_owned());
        self
    }

    /// Creates or replaces a resource at once.
    pub fn insert(&mut self, id: &str, body: Value) {
        let path = Path::new(id);
        let body = path.document(body, "Succeeded");
        self.resources.insert(path.key, body);
    }

    /// The document of a resource.
    pub fn get(&self, id: &str) -> Option<&Value> {
        self.resources.get(&id.to_ascii_lowercase())
    }

    /// Refuses as many of the next PUTs of a type, which is in lower case.
    pub fn refuse(&mut self, kind: &str, times: u32) {
        self.busy.insert(kind.to_owned(), times);
    }

    fn manage(&mut self, request: &Request) -> Answer {
        let path = Path::new(request.path());
        if let Some(refusal) = path.refuse_version(request.parameter("api-version").as_deref()) {
            return refusal;
        }
        match (&request.method, path.target()) {
            (&Method::GET, Target::Operation(number)) => self.operation(number),
            (&Method::GET, Target::List) => self.list(&path, request),
            (&Method::GET, Target::Resource) => match self.resources.get(&path.key) {
                Some(body) => Answer::ok(body.clone()),
                None => self.absent(&path),
            },
            (&Method::PUT, Target::Resource) if path.is_assignment() => {
                self.assign(&path, &request.body)
            }
            (&Method::PUT, Target::Resource) => self.put(&path, &request.body),
            (&Method::DELETE, Target::Resource) => self.delete(&path),
            _ => Answer::refused(405, "MethodNotAllowed", "this cannot be called"),
        }
    }

    fn absent(&self, path: &Path) -> Answer {
        match &path.group {
            Some(group) if !self.resources.contains_key(group) => {
                Answer::refused(404, "ResourceGroupNotFound", "there is no such group")
            }
            _ => Answer::refused(404, "ResourceNotFound", "there is no such resource"),
        }
    }

    fn put(&mut self, path: &Path, body: &Value) -> Answer {
        if let Some(refusal) = self.refuse_put(path, body) {
            return refusal;
        }
        let is_new = !self.resources.contains_key(&path.key);
        let status = if is_new { 201 } else { 200 };
        if path.is_slow() {
            let document = path.document(body.clone(), "Updating");
            self.resources.insert(path.key.clone(), document.clone());
            let url = self.begin(path, Effect::Put);
            return Answer::new(status, document).with_header("azure-asyncoperation", &url);
        }
        let mut document = path.document(body.clone(), "Succeeded");
        if path.kind == "microsoft.managedidentity/userassignedidentities" {
            self.give_identity(path, &mut document);
        }
        self.resources.insert(path.key.clone(), document.clone());
        Answer::new(status, document)
    }

    fn refuse_put(&mut self, path: &Path, body: &Value) -> Option<Answer> {
        if let Some(times) = self.busy.get_mut(&path.kind)
            && *times > 0
        {
            *times -= 1;
            let message = "another operation is in progress";
            return Some(Answer::refused(409, "AnotherOperationInProgress", message));
        }
        for key in path.group.iter().chain([&path.key]) {
            if self.resources.get(key).is_some_and(is_deleting) {
                let message = "it is being deleted";
                return Some(Answer::refused(409, "ResourceBeingDeleted", message));
            }
        }
        if path.group.as_ref() != Some(&path.key) {
            let missing = |key: &&String| !self.resources.contains_key(*key);
            if path.group.iter().any(|key| missing(&key)) {
                return Some(self.absent(path));
            }
            if path.parent.iter().any(|key| missing(&key)) {
                let message = "the parent does not exist";
                return Some(Answer::refused(404, "ParentResourceNotFound", message));
            }
        }
        let references = references(&body["properties"], &path.key);
        if let Some(missing) = references.iter().find(|it| !self.exists(it)) {
            let message = format!("{missing} does not exist");
            return Some(Answer::refused(400, "InvalidResourceReference", &message));
        }
        let there = self.resources.get(&path.key)?;
        let moves = there["location"] != body["location"];
        moves.then(|| Answer::refused(409, "InvalidResourceLocation", "it is elsewhere"))
    }

    /// Whether a resource exists, or a subnet of a network.
    fn exists(&self, key: &str) -> bool {
        let subnet = || {
            let (network, name) = key.split_once("/subnets/")?;
            let subnets = self.resources.get(network)?["properties"]["subnets"].as_array()?;
            let mut names = subnets.iter().filter_map(|it| it["name"].as_str());
            names.find(|it| it.eq_ignore_ascii_case(name))
        };
        self.resources.contains_key(key) || subnet().is_some()
    }

    /// Client ID and principal of an identity, which stay the same.
    fn give_identity(&mut self, path: &Path, document: &mut Value) {
        let number = path.number();
        let client = format!("00000000-0000-4000-8000-{number:012x}");
        let object = format!("00000000-0000-4000-9000-{number:012x}");
        document["properties"] = json!({ "clientId": client, "principalId": object });
        self.principals.entry(client).or_insert(Principal {
            object,
            identity: Some(path.key.clone()),
            age: 0,
        });
    }

    fn delete(&mut self, path: &Path) -> Answer {
        let is_group = path.group.as_ref() == Some(&path.key);
        if !self.resources.contains_key(&path.key) {
            if is_group {
                return self.absent(path);
            }
            return Answer::empty(204);
        }
        if !is_group {
            if self.is_used(&path.key) {
                return Answer::refused(400, "InUse", "it is in use");
            }
            if path.is_zone() && self.within(&path.key).next().is_some() {
                return Answer::refused(409, "CannotDeleteResource", "it has links");
            }
        }
        if path.is_slow() || is_group {
            if let Some(document) = self.resources.get_mut(&path.key) {
                document["properties"]["provisioningState"] = json!("Deleting");
            }
            let url = self.begin(path, Effect::Delete);
            return Answer::empty(202).with_header("location", &url);
        }
        self.remove(&path.key);
        Answer::empty(200)
    }

    /// The resources below another one.
    fn within<'a>(&'a self, key: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
        let prefix = format!("{key}/");
        self.resources
            .iter()
            .filter(move |(key, _)| key.starts_with(&prefix))
    }

    /// Whether a resource outside of it refers to it, or to a part of it.
    fn is_used(&self, key: &str) -> bool {
        let prefix = format!("{key}/");
        let is_within = |other: &str| other == key || other.starts_with(&prefix);
        self.resources.iter().any(|(other, body)| {
            let references = references(&body["properties"], other);
            !is_within(other) && references.iter().any(|it| is_within(it))
        })
    }

    fn remove(&mut self, key: &str) {
        let prefix = format!("{key}/");
        self.resources
            .retain(|other, _| other != key && !other.starts_with(&prefix));
        let resources = &self.resources;
        self.principals.retain(|_, principal| {
            let identity = principal.identity.as_ref();
            identity.is_none_or(|identity| resources.contains_key(identity))
        });
    }
}

impl Cloud for Azure {
    fn answer(&mut self, request: &Request) -> Answer {
        match request.host() {
            MANAGEMENT => self.manage(request),
            GRAPH => self.graph(request),
            host => Answer::refused(404, "UnknownHost", host),
        }
    }

    fn pass_time(&mut self) {
        for principal in self.principals.values_mut() {
            principal.age += 1;
        }
        self.advance();
    }

    fn snapshot(&self) -> Vec<String> {
        let resources = self.resources.iter();
        let resources = resources.map(|(id, body)| format!("{id} {body}"));
        let principals = self.principals.iter();
        let principals = principals.map(|(client, it)| format!("principal {client} {}", it.object));
        resources.chain(principals).collect()
    }
}

fn is_deleting(document: &Value) -> bool {
    document["properties"]["provisioningState"] == "Deleting"
}

/// The IDs that a document names, in lower case, beside those of its own parts.
fn references(value: &Value, own: &str) -> Vec<String> {
    let mut found = Vec::new();
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                let id = value.as_str().filter(|_| field == "id");
                let id = id.map(str::to_ascii_lowercase);
                found.extend(id.filter(|id| !id.starts_with(own)));
                found.extend(references(value, own));
            }
        }
        Value::Array(items) => {
            found.extend(items.iter().flat_map(|item| references(item, own)));
        }
        _ => {}
    }
    found
}

#[cfg(test)]
mod tests;
