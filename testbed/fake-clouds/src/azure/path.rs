//! Paths of URLs: which resource or list they name.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::{Value, json};

use crate::Answer;

/// The beginning of the type of role assignments and role definitions.
pub(super) const AUTHORIZATION: &str = "microsoft.authorization/";
const ZONE: &str = "microsoft.network/privatednszones";

/// A path.
#[derive(Debug)]
pub(super) struct Path {
    /// As it is written.
    id: String,
    /// In lower case.
    pub(super) key: String,
    /// The key of the resource group.
    pub(super) group: Option<String>,
    /// The key of the resource above, if it is no group.
    pub(super) parent: Option<String>,
    /// The type in lower case, for example `microsoft.network/virtualnetworks`; empty for groups.
    pub(super) kind: String,
    is_resource: bool,
}

/// What a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    Resource,
    List,
    Operation(usize),
}

// === impl Path ===

impl Path {
    pub(super) fn new(id: &str) -> Self {
        let id = id.trim_end_matches('/');
        let key = id.to_ascii_lowercase();
        let segments: Vec<&str> = key.split('/').collect();
        let group = (segments.len() >= 5 && segments[3] == "resourcegroups")
            .then(|| segments[..5].join("/"));
        // The last provider: role assignments are below resources of another one.
        let provider = segments.iter().rposition(|it| *it == "providers");
        let (mut kind, mut parent, mut is_resource) = (String::new(), None, false);
        if let Some(at) = provider {
            let rest = segments.get(at + 2..).unwrap_or_default();
            let namespace = segments.get(at + 1).copied().unwrap_or_default();
            let types: Vec<&str> = rest.iter().step_by(2).copied().collect();
            kind = format!("{namespace}/{}", types.join("/"));
            is_resource = !rest.is_empty() && rest.len().is_multiple_of(2);
            if rest.len() > 2 {
                let above = segments.len() - 2 + rest.len() % 2;
                parent = Some(segments[..above].join("/"));
            }
        } else if segments.len() == 5 {
            is_resource = true;
        }
        Self {
            id: id.to_owned(),
            group,
            parent,
            kind,
            is_resource,
            key,
        }
    }

    pub(super) fn target(&self) -> Target {
        let operation = self.key.rsplit_once("/operations/");
        if let Some(number) = operation.and_then(|(_, number)| number.parse().ok()) {
            return Target::Operation(number);
        }
        if self.is_resource {
            return Target::Resource;
        }
        Target::List
    }

    /// Refuses versions that are not those of the type.
    pub(super) fn refuse_version(&self, version: Option<&str>) -> Option<Answer> {
        let Some(version) = version else {
            let message = "api-version is missing";
            return Some(Answer::refused(400, "MissingApiVersionParameter", message));
        };
        let (namespace, name) = self.kind.split_once('/').unwrap_or_default();
        let expected = match namespace {
            "" => "2021-04-01",
            "microsoft.network" if name.starts_with("privatednszones") => "2020-06-01",
            "microsoft.network" if name == "dnszones" => "2018-05-01",
            "microsoft.network" => "2023-11-01",
            "microsoft.managedidentity" => "2023-01-31",
            "microsoft.authorization" => "2022-04-01",
            _ => version,
        };
        let message = format!("use {expected} for {}", self.kind);
        (version != expected).then(|| Answer::refused(400, "NoRegisteredProviderFound", &message))
    }

    pub(super) fn is_assignment(&self) -> bool {
        self.kind == format!("{AUTHORIZATION}roleassignments")
    }

    pub(super) fn is_zone(&self) -> bool {
        self.kind == ZONE
    }

    /// Whether changes take time.
    pub(super) fn is_slow(&self) -> bool {
        self.kind.starts_with("microsoft.network/") || self.kind.starts_with("microsoft.compute/")
    }

    /// A number of the resource, for what Azure would choose at random.
    pub(super) fn number(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.key.hash(&mut hasher);
        hasher.finish() >> 16
    }

    /// The document of the resource, with what Azure adds.
    pub(super) fn document(&self, mut body: Value, state: &str) -> Value {
        body["id"] = json!(self.id);
        body["name"] = json!(self.id.rsplit('/').next());
        body["type"] = json!(self.kind);
        if !body["properties"].is_object() {
            body["properties"] = json!({});
        }
        let properties = &mut body["properties"];
        properties["provisioningState"] = json!(state);
        let subnets = properties.get_mut("subnets").and_then(Value::as_array_mut);
        for subnet in subnets.into_iter().flatten() {
            let name = subnet["name"].as_str().unwrap_or_default();
            subnet["id"] = json!(format!("{}/subnets/{name}", self.id));
        }
        body
    }
}
