//! Compute Engine: resources by their paths, and operations on them.
//!
//! It knows no collections: a resource is any document with a name, and its references are the links to other resources.

use std::collections::BTreeMap;

use http::Method;
use serde_json::{Value, json};
use support::rest::Request;

use super::line;
use crate::Answer;

/// Steps until an operation is done.
const STEPS: u32 = 2;

/// Resources of a project.
#[derive(Debug, Clone)]
pub struct Compute {
    /// By their paths in the project, such as `global/networks/a`.
    pub resources: BTreeMap<String, Value>,
    /// Resources whose insertion fails in their operation, by their paths.
    pub failing: Vec<String>,
    operations: BTreeMap<String, Operation>,
    /// How links to resources of the project begin.
    links: String,
    next: u32,
}

#[derive(Debug, Clone)]
struct Operation {
    steps: u32,
    target: String,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Insert,
    Patch,
    Delete,
}

// === impl Compute ===

impl Compute {
    pub(super) fn new(project: &str) -> Self {
        Self {
            resources: BTreeMap::new(),
            failing: Vec::new(),
            operations: BTreeMap::new(),
            links: format!("https://www.googleapis.com/compute/v1/projects/{project}/"),
            next: 0,
        }
    }

    /// The link to a resource.
    pub fn link(&self, path: &str) -> String {
        format!("{}{path}", self.links)
    }

    /// Adds a resource of others.
    pub fn insert(&mut self, path: &str, mut body: Value) {
        body["name"] = json!(path.rsplit('/').next());
        body["selfLink"] = json!(self.link(path));
        self.resources.insert(path.to_owned(), body);
    }

    pub(super) fn pass_time(&mut self) {
        let names: Vec<_> = self.operations.keys().cloned().collect();
        for name in names {
            self.step(&name);
        }
    }

    pub(super) fn snapshot(&self) -> Vec<String> {
        let lines = self.resources.iter();
        lines
            .map(|(path, body)| format!("{path} {}", line(body)))
            .collect()
    }

    pub(super) fn answer(&mut self, request: &Request, path: &str) -> Answer {
        match (&request.method, path.split_once("/operations/")) {
            (&Method::POST, Some((place, rest))) => self.wait(place, rest),
            (_, Some(_)) => not_found(path),
            (&Method::GET, None) => match self.resources.get(path) {
                Some(body) => Answer::ok(body.clone()),
                None => not_found(path),
            },
            (&Method::POST, None) => self.post(path, &request.body),
            (&Method::PATCH, None) => self.patch(path, &request.body),
            (&Method::DELETE, None) => self.delete(path),
            _ => not_found(path),
        }
    }

    /// The operation, which has made a step.
    fn wait(&mut self, place: &str, rest: &str) -> Answer {
        let name = rest.strip_suffix("/wait").unwrap_or_default().to_owned();
        let known = self.operations.get(&name);
        if !known.is_some_and(|it| it.target.starts_with(&format!("{place}/"))) {
            return not_found(rest);
        }
        self.step(&name);
        self.operation(&name)
    }

    fn post(&mut self, collection: &str, body: &Value) -> Answer {
        let name = body["name"].as_str().unwrap_or_default();
        let path = format!("{collection}/{name}");
        if self.resources.contains_key(&path) {
            return refused(
                409,
                "alreadyExists",
                &format!("The resource '{path}' already exists"),
            );
        }
        if let Some(refusal) = self.check(body) {
            return refusal;
        }
        self.insert(&path, body.clone());
        self.begin(path, Kind::Insert)
    }

    fn patch(&mut self, path: &str, changes: &Value) -> Answer {
        if let Some(refusal) = self.not_ready(path).or_else(|| self.check(changes)) {
            return refusal;
        }
        let Some(resource) = self.resources.get_mut(path) else {
            return not_found(path);
        };
        for (field, value) in changes.as_object().into_iter().flatten() {
            resource[field.as_str()].clone_from(value);
        }
        self.begin(path.to_owned(), Kind::Patch)
    }

    fn delete(&mut self, path: &str) -> Answer {
        if !self.resources.contains_key(path) {
            return not_found(path);
        }
        if let Some(refusal) = self.not_ready(path) {
            return refusal;
        }
        let link = self.link(path);
        let mut others = self.resources.iter().filter(|(other, _)| *other != path);
        if let Some((other, _)) = others.find(|(_, body)| links(body).contains(&link.as_str())) {
            let message = format!("The resource '{path}' is already being used by '{other}'");
            return refused(400, "resourceInUseByAnotherResource", &message);
        }
        self.begin(path.to_owned(), Kind::Delete)
    }

    /// Whether what a document refers to exists and can be used.
    fn check(&self, body: &Value) -> Option<Answer> {
        let paths = links(body)
            .into_iter()
            .filter_map(|link| link.strip_prefix(&self.links));
        for path in paths {
            if !self.resources.contains_key(path) {
                return Some(not_found(path));
            }
            if let Some(refusal) = self.not_ready(path) {
                return Some(refusal);
            }
        }
        None
    }

    /// The refusal of a resource with an operation.
    fn not_ready(&self, path: &str) -> Option<Answer> {
        let mut pending = self.operations.values().filter(|it| it.steps > 0);
        pending.find(|it| it.target == path)?;
        Some(refused(
            400,
            "resourceNotReady",
            &format!("The resource '{path}' is not ready"),
        ))
    }

    fn begin(&mut self, target: String, kind: Kind) -> Answer {
        self.next += 1;
        let name = format!("operation-{}", self.next);
        let operation = Operation {
            steps: STEPS,
            target,
            kind,
        };
        self.operations.insert(name.clone(), operation);
        self.operation(&name)
    }

    fn step(&mut self, name: &str) {
        let Some(operation) = self.operations.get_mut(name).filter(|it| it.steps > 0) else {
            return;
        };
        operation.steps -= 1;
        let fails = operation.kind == Kind::Insert && self.failing.contains(&operation.target);
        if operation.steps == 0 && (operation.kind == Kind::Delete || fails) {
            self.resources.remove(&operation.target);
        }
    }

    fn operation(&self, name: &str) -> Answer {
        let Some(operation) = self.operations.get(name) else {
            return not_found(name);
        };
        let is_done = operation.steps == 0;
        let mut body = json!({
            "kind": "compute#operation",
            "name": name,
            "targetLink": self.link(&operation.target),
            "status": if is_done { "DONE" } else { "RUNNING" },
        });
        if is_done && operation.kind == Kind::Insert && self.failing.contains(&operation.target) {
            let error =
                json!({ "code": "QUOTA_EXCEEDED", "message": "Quota 'NETWORKS' exceeded." });
            body["error"] = json!({ "errors": [error] });
            body["httpErrorStatusCode"] = json!(403);
        }
        Answer::ok(body)
    }
}

/// The links of a document to others.
fn links(document: &Value) -> Vec<&str> {
    match document {
        Value::Object(fields) => {
            let others = fields.iter().filter(|(name, _)| *name != "selfLink");
            others.flat_map(|(_, value)| links(value)).collect()
        }
        Value::Array(items) => items.iter().flat_map(links).collect(),
        Value::String(text) if text.starts_with("https://") => vec![text.as_str()],
        _ => Vec::new(),
    }
}

fn not_found(path: &str) -> Answer {
    refused(
        404,
        "notFound",
        &format!("The resource '{path}' was not found"),
    )
}

/// A refusal in the form of Compute Engine.
fn refused(status: u16, reason: &str, message: &str) -> Answer {
    let errors = json!([{ "domain": "global", "reason": reason, "message": message }]);
    let error = json!({ "code": status, "message": message, "errors": errors });
    Answer::new(status, json!({ "error": error }))
}
