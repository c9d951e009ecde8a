//! A policy: who has which role. It has an etag, so that a change that was made meanwhile is not lost.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::Answer;

/// The version of policies with conditions.
const WITH_CONDITIONS: u64 = 3;

/// A policy.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// The bindings.
    pub bindings: Vec<Value>,
    /// How many of the next changes are made by others first, and so conflict.
    pub conflicts: u32,
    changes: u32,
}

// === impl Policy ===

impl Policy {
    /// Adds a binding of others, if it is not there.
    pub fn bind(&mut self, role: &str, member: &str) {
        let binding = json!({ "role": role, "members": [member] });
        if !self.bindings.contains(&binding) {
            self.bindings.push(binding);
        }
        self.changes += 1;
    }

    pub(super) fn get(&self, version: Option<u64>) -> Answer {
        if version != Some(WITH_CONDITIONS) {
            let message = "this fake has no policies without conditions: request version 3";
            return Answer::refused(400, "INVALID_ARGUMENT", message);
        }
        let has_conditions = self
            .bindings
            .iter()
            .any(|binding| binding["condition"].is_object());
        Answer::ok(json!({
            "version": if has_conditions { WITH_CONDITIONS } else { 1 },
            "etag": self.etag(),
            "bindings": self.bindings,
        }))
    }

    /// `is_known` says whether there is a service account with an e-mail address.
    pub(super) fn set(
        &mut self,
        policy: &Value,
        project: &str,
        is_known: impl Fn(&str) -> bool,
    ) -> Answer {
        if self.conflicts > 0 {
            self.conflicts -= 1;
            self.bind(
                "roles/viewer",
                &format!("user:other-{}@example.com", self.conflicts),
            );
        }
        if policy["etag"].as_str() != Some(self.etag().as_str()) {
            return Answer::refused(409, "ABORTED", "There were concurrent policy changes.");
        }
        let bindings = policy["bindings"].as_array().cloned().unwrap_or_default();
        let own = format!("@{project}.iam.gserviceaccount.com");
        for member in bindings.iter().flat_map(members) {
            let email = member.strip_prefix("serviceAccount:");
            if let Some(email) = email.filter(|email| email.ends_with(&own) && !is_known(email)) {
                let message = format!("Service account {email} does not exist.");
                return Answer::refused(400, "INVALID_ARGUMENT", &message);
            }
        }
        let has_conditions = bindings
            .iter()
            .any(|binding| binding["condition"].is_object());
        if has_conditions && policy["version"].as_u64() != Some(WITH_CONDITIONS) {
            return Answer::refused(400, "INVALID_ARGUMENT", "conditions need version 3");
        }
        self.bindings = bindings;
        // Without members a binding is none.
        self.bindings.retain(|binding| !members(binding).is_empty());
        self.changes += 1;
        self.get(Some(WITH_CONDITIONS))
    }

    /// A service account is deleted: what it was bound to stays, under another name.
    pub(super) fn forget(&mut self, email: &str) {
        let live = json!(format!("serviceAccount:{email}"));
        let deleted = json!(format!("deleted:serviceAccount:{email}?uid=1"));
        let members = self
            .bindings
            .iter_mut()
            .filter_map(|it| it.get_mut("members")?.as_array_mut());
        for member in members.flatten().filter(|member| **member == live) {
            member.clone_from(&deleted);
            self.changes += 1;
        }
    }

    pub(super) fn snapshot(&self, of: &str) -> Vec<String> {
        let lines: BTreeSet<_> = self
            .bindings
            .iter()
            .flat_map(|binding| {
                let about = format!("{of} {} {}", binding["role"], binding["condition"]);
                members(binding)
                    .into_iter()
                    .map(move |member| format!("{about} {member}"))
            })
            .collect();
        lines.into_iter().collect()
    }

    fn etag(&self) -> String {
        format!("etag-{}", self.changes)
    }
}

fn members(binding: &Value) -> Vec<String> {
    let members = binding["members"].as_array().into_iter().flatten();
    members
        .filter_map(|it| it.as_str().map(str::to_owned))
        .collect()
}
