//! What an infrastructure is called, and how its resources say whose they are. Pure.

use serde_json::Value;
use support::google_cloud::{COMPUTE, IAM, RESOURCE_MANAGER};

use crate::Usage;
use crate::create::text;

/// The longest name of an infrastructure, so that names that are made of it have at most 63 characters.
const LONGEST: usize = 49;
/// The longest name of one with identities: IDs of service accounts have at most 30 characters.
pub(crate) const LONGEST_WITH_IDENTITIES: usize = 13;
/// What IDs of workload identity pools may not begin with.
const RESERVED: &str = "gcp-";
/// How links to resources of Compute Engine begin.
const LINKS: &str = "https://www.googleapis.com/compute/v1/projects/";

/// An infrastructure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scope {
    pub(crate) infra_id: String,
    /// ID of the project.
    pub(crate) project: String,
}

// === impl Scope ===

impl Scope {
    /// Checks the names, which become parts of others and of URLs.
    pub(crate) fn new(infra_id: &str, project: &str) -> Result<Self, Usage> {
        let is_name =
            text::is_name(infra_id) && infra_id.starts_with(|c: char| c.is_ascii_lowercase());
        if !is_name || infra_id.len() > LONGEST {
            return Err(Usage::new(&format!(
                "--infra-id {infra_id:?}: use lower-case letters, digits and dashes, at most {LONGEST}, with a letter at the \
                 beginning and no dash at the end"
            )));
        }
        if !is_project(project) {
            return Err(Usage::new(&format!(
                "the project {project:?}: use the ID of a project, 6 to 30 lower-case letters, digits and dashes, not its name \
                 or number"
            )));
        }
        Ok(Self {
            infra_id: infra_id.to_owned(),
            project: project.to_owned(),
        })
    }

    /// Refuses names that are too long for identities.
    pub(crate) fn check_identities(&self) -> Result<(), Usage> {
        let infra_id = &self.infra_id;
        if infra_id.len() > LONGEST_WITH_IDENTITIES {
            return Err(Usage::new(&format!(
                "--infra-id {infra_id:?}: use at most {LONGEST_WITH_IDENTITIES} characters, because names of service accounts \
                 on Google Cloud, which are made of it, have at most 30"
            )));
        }
        if infra_id.starts_with(RESERVED) {
            return Err(Usage::new(&format!(
                "--infra-id {infra_id:?}: Google Cloud reserves names that begin with {RESERVED} for its own pools"
            )));
        }
        Ok(())
    }

    /// The name of a resource of the infrastructure.
    pub(crate) fn named(&self, suffix: &str) -> String {
        format!("{}-{suffix}", self.infra_id)
    }

    /// The description of each of its resources.
    pub(crate) fn description(&self) -> String {
        format!("HyperShift cluster {}", self.infra_id)
    }

    /// Whether a resource belongs to the infrastructure. Other HyperShift command lines write a few words around ours.
    pub(crate) fn owns(&self, resource: &Value) -> bool {
        let description = resource["description"].as_str().unwrap_or_default();
        let end = format!(" cluster {}", self.infra_id);
        description.contains("HyperShift") && description.ends_with(&end)
    }

    /// The refusal of a resource that belongs to something else.
    pub(crate) fn foreign(noun: &str, name: &str, resource: &Value) -> String {
        let description = resource["description"].as_str().unwrap_or_default();
        format!(
            "{noun} {name} exists and belongs to something else (its description is {description:?})"
        )
    }

    /// A URL of Compute Engine, by its path in the project.
    pub(crate) fn compute(&self, path: &str) -> String {
        format!("{COMPUTE}/projects/{}/{path}", self.project)
    }

    /// The link to a resource of Compute Engine.
    pub(crate) fn link(&self, path: &str) -> String {
        format!("{LINKS}{}/{path}", self.project)
    }

    /// A URL of IAM, by its path in the project.
    pub(crate) fn iam(&self, path: &str) -> String {
        format!("{IAM}/projects/{}/{path}", self.project)
    }

    /// The URL of the project in Resource Manager.
    pub(crate) fn project_url(&self) -> String {
        format!("{RESOURCE_MANAGER}/projects/{}", self.project)
    }
}

fn is_project(id: &str) -> bool {
    let starts = id.starts_with(|c: char| c.is_ascii_lowercase());
    text::is_name(id) && starts && (6..=30).contains(&id.len())
}

/// Whether a text has the form of a region, such as us-central1.
pub(super) fn is_region(text: &str) -> bool {
    let Some((area, place)) = text.split_once('-') else {
        return false;
    };
    let letters = place.trim_end_matches(|c: char| c.is_ascii_digit());
    let are_letters =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase());
    are_letters(area) && are_letters(letters) && letters.len() < place.len()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_checked() {
        for (infra_id, project, with_identities, expected) in [
            ("a-x1", "project-1", true, true),
            (&"x".repeat(13), "project-1", true, true),
            (&"x".repeat(14), "project-1", true, false),
            (&"x".repeat(49), "project-1", false, true),
            (&"x".repeat(50), "project-1", false, false),
            ("gcp-a", "project-1", true, false),
            ("gcp-a", "project-1", false, true),
            ("1a", "project-1", false, false),
            ("a-", "project-1", false, false),
            ("A", "project-1", false, false),
            ("a/b", "project-1", false, false),
            ("", "project-1", false, false),
            ("a", "123456789", false, false),
            ("a", "proj", false, false),
            ("a", "project/../other", false, false),
            ("a", "example.com:project", false, false),
        ] {
            let scope = Scope::new(infra_id, project);
            let checked = scope.and_then(|scope| {
                if with_identities {
                    return scope.check_identities();
                }
                Ok(())
            });
            assert_eq!(checked.is_ok(), expected, "{infra_id} {project}");
        }
    }

    #[test]
    fn regions_have_an_area_and_a_number() {
        for (text, expected) in [
            ("us-central1", true),
            ("northamerica-northeast2", true),
            ("europe-west12", true),
            ("us-central1-a", false),
            ("us-central", false),
            ("us", false),
            ("us-1", false),
            ("US-central1", false),
            ("us-central1/..", false),
            ("", false),
        ] {
            assert_eq!(is_region(text), expected, "{text}");
        }
    }

    #[test]
    fn descriptions_say_whose_a_resource_is() {
        let scope = Scope::new("a-x1", "project-1").unwrap();
        for (description, expected) in [
            (scope.description().as_str(), true),
            ("HyperShift VPC for cluster a-x1", true),
            ("OIDC Provider for HyperShift cluster a-x1", true),
            ("HyperShift cluster a-x10", false),
            ("HyperShift cluster b-a-x1", false),
            ("HyperShift cluster", false),
            ("the network of cluster a-x1", false),
            ("", false),
        ] {
            let resource = json!({ "description": description });
            assert_eq!(scope.owns(&resource), expected, "{description}");
        }
        assert!(!scope.owns(&json!({})));
    }
}
