//! What an infrastructure is called, where it is, and the tags of what belongs to it. Pure.

use std::collections::BTreeMap;

use serde_json::Value;
use support::azure::{Cloud, Endpoints};

use super::account::Account;
use super::resource::is_uuid;
use crate::Usage;
use crate::create::text;

/// The longest name of an infrastructure, as on other clouds.
const LONGEST_INFRA_ID: usize = 27;
/// The longest name of a resource group.
const LONGEST_GROUP: usize = 90;
/// The beginning of the name of the tag that says whose a resource is. Names of tags cannot have slashes.
const CLUSTER_TAG: &str = "kubernetes.io_cluster.";
const OWNED: &str = "owned";
/// The tag with the name of the cluster.
pub(super) const NAME_TAG: &str = "hypershift.openshift.io_cluster-name";
/// The tag with the name of the infrastructure.
pub(super) const ID_TAG: &str = "hypershift.openshift.io_infra-id";

/// Names and values.
pub(crate) type Tags = BTreeMap<String, String>;

/// An infrastructure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scope {
    pub(crate) infra_id: String,
    /// Name of the cluster.
    pub(crate) name: String,
    pub(crate) location: String,
    pub(crate) subscription: String,
    /// Tags of resource groups beside those that say whose they are.
    pub(crate) additional: Tags,
    pub(crate) endpoints: Endpoints,
}

/// Whose a resource is, by its tags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Owner {
    /// Of this infrastructure.
    Ours,
    /// Of another one, with this name.
    Other(String),
    /// No tag says it.
    Unknown,
}

// === impl Scope ===

impl Scope {
    /// Checks the names, which become parts of others.
    pub(crate) fn new(
        infra_id: &str,
        name: &str,
        location: &str,
        account: &Account,
        cloud: Cloud,
        additional: Tags,
    ) -> Result<Self, Usage> {
        if !text::is_name(infra_id) || infra_id.len() > LONGEST_INFRA_ID {
            return Err(Usage::new(&format!(
                "--infra-id {infra_id:?}: use lower-case letters, digits and dashes, at most {LONGEST_INFRA_ID}, with no \
                 dash at either end"
            )));
        }
        let longest = LONGEST_GROUP - "-vnet-".len() - infra_id.len();
        if !text::is_name(name) || name.len() > longest {
            return Err(Usage::new(&format!(
                "--name {name:?}: use lower-case letters, digits and dashes, at most {longest}, with no dash at either end"
            )));
        }
        if !location.bytes().all(|it| it.is_ascii_alphanumeric()) || location.is_empty() {
            return Err(Usage::new(&format!(
                "--location {location:?} is not a region of Azure (for example eastus)"
            )));
        }
        if !is_uuid(&account.subscription_id) {
            return Err(Usage::new(
                &"--azure-creds: subscriptionId is not a UUID (for example 00000000-0000-0000-0000-000000000001)",
            ));
        }
        Ok(Self {
            infra_id: infra_id.to_owned(),
            name: name.to_owned(),
            location: location.to_ascii_lowercase(),
            subscription: account.subscription_id.clone(),
            additional,
            endpoints: cloud.endpoints(),
        })
    }

    /// The URL of a resource or of a list.
    pub(super) fn url(&self, id: &str, version: &str) -> String {
        format!("{}{id}?api-version={version}", self.endpoints.management)
    }

    /// The URL of a list in the subscription.
    pub(super) fn list_url(&self, path: &str, version: &str) -> String {
        self.url(
            &format!("/subscriptions/{}/{path}", self.subscription),
            version,
        )
    }

    /// The ID of a resource group.
    pub(crate) fn group_id(&self, group: &str) -> String {
        format!(
            "/subscriptions/{}/resourceGroups/{group}",
            self.subscription
        )
    }

    /// The name of the resource group of the cluster, if none is given, and of the network and other things in it.
    pub(crate) fn main_name(&self) -> String {
        format!("{}-{}", self.name, self.infra_id)
    }

    /// The name of a further resource group, or of an identity.
    pub(super) fn named(&self, part: &str) -> String {
        format!("{}-{part}-{}", self.name, self.infra_id)
    }

    /// The name of the tag that says whose a resource is.
    pub(super) fn cluster_tag(&self) -> String {
        format!("{CLUSTER_TAG}{}", self.infra_id)
    }

    /// The tags of a resource.
    pub(super) fn tags(&self) -> Tags {
        [
            (self.cluster_tag().as_str(), OWNED),
            (NAME_TAG, &self.name),
            (ID_TAG, &self.infra_id),
            ("hypershift.openshift.io_source", "cli"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
    }

    /// The tags of a resource group.
    pub(super) fn group_tags(&self) -> Tags {
        let mut tags = self.additional.clone();
        tags.extend(self.tags());
        tags
    }

    /// Whose a resource with these tags is.
    pub(super) fn owner(&self, tags: &Value) -> Owner {
        let mut other = None;
        for (key, value) in tags.as_object().into_iter().flatten() {
            let Some(infra_id) = infra_id_of(key) else {
                continue;
            };
            if value == OWNED && infra_id.eq_ignore_ascii_case(&self.infra_id) {
                return Owner::Ours;
            }
            other = Some(infra_id.to_owned());
        }
        other.map_or(Owner::Unknown, Owner::Other)
    }

    /// Whether the name of a resource without a tag of any cluster says that it is one of this infrastructure: controllers
    /// do not tag all that they make. `others` are other infrastructures, whose names may begin with that of this one.
    pub(super) fn names(&self, name: &str, others: &[String]) -> bool {
        let own = [self.main_name(), format!("{}-nsg", self.main_name())];
        if own.iter().any(|own| own.eq_ignore_ascii_case(name)) {
            return true;
        }
        let mut longer = others.iter().filter(|it| it.len() > self.infra_id.len());
        has_prefix(name, &self.infra_id) && !longer.any(|other| has_prefix(name, other))
    }
}

/// Names of tags have no case.
fn infra_id_of(key: &str) -> Option<&str> {
    let (start, rest) = key.split_at_checked(CLUSTER_TAG.len())?;
    start.eq_ignore_ascii_case(CLUSTER_TAG).then_some(rest)
}

/// Whether a name is that of an infrastructure, or begins with it and a dash.
fn has_prefix(name: &str, infra_id: &str) -> bool {
    let Some((start, rest)) = name.split_at_checked(infra_id.len()) else {
        return false;
    };
    start.eq_ignore_ascii_case(infra_id) && (rest.is_empty() || rest.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn new(infra_id: &str, name: &str, location: &str, subscription: &str) -> Result<Scope, Usage> {
        let account = Account::of(subscription);
        let cloud = Cloud::Public;
        Scope::new(infra_id, name, location, &account, cloud, Tags::new())
    }

    const SUBSCRIPTION: &str = "00000000-0000-0000-0000-000000000001";

    #[test]
    fn names_are_checked() {
        for (infra_id, name, location, subscription, expected) in [
            ("a-x1", "a", "eastus", SUBSCRIPTION, true),
            (&*"x".repeat(27), "a", "eastus", SUBSCRIPTION, true),
            (&"x".repeat(28), "a", "eastus", SUBSCRIPTION, false),
            ("", "a", "eastus", SUBSCRIPTION, false),
            ("-a", "a", "eastus", SUBSCRIPTION, false),
            ("a/b", "a", "eastus", SUBSCRIPTION, false),
            ("a-x1", "A", "eastus", SUBSCRIPTION, false),
            ("a-x1", &"x".repeat(81), "eastus", SUBSCRIPTION, false),
            ("a-x1", "a", "East US", SUBSCRIPTION, false),
            ("a-x1", "a", "", SUBSCRIPTION, false),
            ("a-x1", "a", "eastus", "../other", false),
        ] {
            let made = new(infra_id, name, location, subscription);
            assert_eq!(made.is_ok(), expected, "{infra_id} {name} {location}");
        }
    }

    #[test]
    fn tags_say_whose_a_resource_is() {
        let scope = new("a-x1", "a", "eastus", SUBSCRIPTION).unwrap();
        for (tags, expected) in [
            (json!(scope.tags()), Owner::Ours),
            (
                json!({ "Kubernetes.io_cluster.a-x1": "owned" }),
                Owner::Ours,
            ),
            (
                json!({ "kubernetes.io_cluster.a-x1": "shared" }),
                Owner::Other("a-x1".to_owned()),
            ),
            (
                json!({ "kubernetes.io_cluster.a-x10": "owned" }),
                Owner::Other("a-x10".to_owned()),
            ),
            (
                json!({ "kubernetes.io_cluster.b": "owned", "kubernetes.io_cluster.a-x1": "owned" }),
                Owner::Ours,
            ),
            (json!({ "team": "a-x1" }), Owner::Unknown),
            (json!(null), Owner::Unknown),
        ] {
            assert_eq!(scope.owner(&tags), expected, "{tags}");
        }
    }

    #[test]
    fn names_of_others_that_begin_alike_are_not_ours() {
        let scope = new("a-x1", "a", "eastus", SUBSCRIPTION).unwrap();
        let others = ["a-x1-b".to_owned(), "a".to_owned()];
        for (name, expected) in [
            ("a-x1", true),
            ("A-X1-internal", true),
            ("a-a-x1", true),
            ("a-a-x1-nsg", true),
            ("a-x10", false),
            ("a-x1-b", false),
            ("a-x1-b-internal", false),
            ("a-x1-bc", true),
            ("b-a-x1", false),
            ("a", false),
        ] {
            assert_eq!(scope.names(name, &others), expected, "{name}");
        }
    }
}
