//! A fake of Google Cloud: Compute Engine, IAM, Cloud Resource Manager.
//!
//! It has one project. What is new or about to be deleted cannot be used until its operation is done; operations make a step
//! when they are waited for, and when [time passes](crate::Cloud::pass_time).

pub mod compute;
pub mod identity;
mod policy;

use http::Method;
use serde_json::{Value, json};
use support::rest::Request;

use self::compute::Compute;
use self::identity::Identity;
pub use self::policy::Policy;
use crate::{Answer, Cloud};

/// Google Cloud, as far as one project goes.
#[derive(Debug, Clone)]
pub struct GoogleCloud {
    /// ID of the project.
    pub project: String,
    /// Number of the project.
    pub number: String,
    /// Compute Engine.
    pub compute: Compute,
    /// Service accounts and workload identity pools.
    pub identity: Identity,
    /// The policy of the project.
    pub policy: Policy,
}

// === impl GoogleCloud ===

impl GoogleCloud {
    /// A project without resources.
    pub fn new(project: &str, number: &str) -> Self {
        Self {
            project: project.to_owned(),
            number: number.to_owned(),
            compute: Compute::new(project),
            identity: Identity::default(),
            policy: Policy::default(),
        }
    }

    /// Resource Manager.
    fn manage(&mut self, request: &Request, rest: &str) -> Answer {
        match (&request.method, rest) {
            (&Method::GET, "") => Answer::ok(json!({
                "projectId": self.project, "projectNumber": self.number, "lifecycleState": "ACTIVE",
            })),
            (&Method::POST, ":getIamPolicy") => {
                let options = &request.body["options"];
                self.policy.get(options["requestedPolicyVersion"].as_u64())
            }
            (&Method::POST, ":setIamPolicy") => {
                let accounts = &self.identity;
                let is_known = |email: &str| accounts.is_known(email);
                self.policy
                    .set(&request.body["policy"], &self.project, is_known)
            }
            _ => not_found(rest),
        }
    }
}

impl Cloud for GoogleCloud {
    fn answer(&mut self, request: &Request) -> Answer {
        let host = request.host();
        let root = match host {
            "compute.googleapis.com" => "/compute/v1/projects/",
            "iam.googleapis.com" | "cloudresourcemanager.googleapis.com" => "/v1/projects/",
            _ => return not_found(host),
        };
        let path = request.path().strip_prefix(root).unwrap_or_default();
        // Operations of IAM have the number of the project.
        let rest = [&self.project, &self.number]
            .into_iter()
            .filter_map(|project| path.strip_prefix(project.as_str()))
            .find(|rest| rest.is_empty() || rest.starts_with(['/', ':']));
        let Some(rest) = rest else {
            return Answer::refused(
                403,
                "PERMISSION_DENIED",
                "The caller does not have permission",
            );
        };
        match host {
            "compute.googleapis.com" => self.compute.answer(request, rest.trim_start_matches('/')),
            "iam.googleapis.com" => {
                let answer = self
                    .identity
                    .answer(request, &self.project, &self.number, rest);
                if let Some(email) = self.identity.take_deleted() {
                    self.policy.forget(&email);
                }
                answer
            }
            _ => self.manage(request, rest),
        }
    }

    fn pass_time(&mut self) {
        self.compute.pass_time();
        self.identity.pass_time();
    }

    fn snapshot(&self) -> Vec<String> {
        let mut lines = self.compute.snapshot();
        lines.extend(self.identity.snapshot());
        lines.extend(self.policy.snapshot("project"));
        lines
    }
}

fn not_found(what: &str) -> Answer {
    Answer::refused(404, "NOT_FOUND", &format!("{what} was not found"))
}

/// A document with sorted fields, in one line.
fn line(document: &Value) -> String {
    match document {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            let fields = fields
                .into_iter()
                .map(|(name, value)| format!("{name}: {}", line(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(line).collect();
            format!("[{}]", items.join(", "))
        }
        other => other.to_string(),
    }
}
