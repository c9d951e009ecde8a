//! What an infrastructure is called, and the tags of what belongs to it. Pure.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};
use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use support::aws::{Element, is_region, partition};

use super::call::Tags;
use crate::Usage;
use crate::create::text;

/// The longest name, so that names of roles that are made of it have at most 64 characters.
pub(crate) const LONGEST_INFRA_ID: usize = 27;
/// The beginning of the key of the tag that says whose a resource is.
const CLUSTER_TAG: &str = "kubernetes.io/cluster/";
const OWNED: &str = "owned";

/// An infrastructure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scope {
    pub(crate) infra_id: String,
    /// Name of the cluster.
    pub(crate) name: String,
    pub(crate) region: String,
    /// Tags beside those that say whose a resource is.
    pub(crate) additional: Tags,
}

// === impl Scope ===

impl Scope {
    /// Checks the names, which become parts of others.
    pub(crate) fn new(
        infra_id: &str,
        name: &str,
        region: &str,
        additional: BTreeMap<String, String>,
    ) -> Result<Self, Usage> {
        if !text::is_name(infra_id) || infra_id.len() > LONGEST_INFRA_ID {
            return Err(Usage::new(&format!(
                "--infra-id {infra_id:?}: use lower-case letters, digits and dashes, at most {LONGEST_INFRA_ID}, with no \
                 dash at either end"
            )));
        }
        if !is_region(region) {
            return Err(Usage::new(&format!(
                "--region {region:?} is not a region of AWS (for example us-east-1)"
            )));
        }
        Ok(Self {
            infra_id: infra_id.to_owned(),
            name: name.to_owned(),
            region: region.to_owned(),
            additional,
        })
    }

    /// The key of the tag that says whose a resource is.
    pub(crate) fn cluster_tag(&self) -> String {
        format!("{CLUSTER_TAG}{}", self.infra_id)
    }

    /// The name of a resource of the infrastructure.
    pub(crate) fn named(&self, suffix: &str) -> String {
        format!("{}-{suffix}", self.infra_id)
    }

    /// The tags of a resource.
    pub(crate) fn tags(&self, name: &str) -> Tags {
        let mut tags = self.additional.clone();
        for (key, value) in [
            (self.cluster_tag().as_str(), OWNED),
            ("Name", name),
            ("hypershift.openshift.io/cluster-name", &self.name),
            ("hypershift.openshift.io/infra-id", &self.infra_id),
            ("hypershift.openshift.io/source", "cli"),
        ] {
            tags.insert(key.to_owned(), value.to_owned());
        }
        tags
    }

    /// Whether tags say that a resource belongs to the infrastructure.
    pub(crate) fn owns(&self, tags: &Tags) -> bool {
        tags.get(&self.cluster_tag()).is_some_and(|it| it == OWNED)
    }

    /// Whether a resource with a name of the infrastructure may be changed: it has our tag, or no tag of any cluster, because
    /// its creation was interrupted, or another tool has made it.
    pub(crate) fn may_change(&self, tags: &Tags) -> bool {
        let has_owner = tags.keys().any(|key| key.starts_with(CLUSTER_TAG));
        self.owns(tags) || !has_owner
    }

    /// The second part of ARNs.
    pub(crate) fn partition(&self) -> &'static str {
        partition(&self.region)
    }
}

/// The region of a hosted cluster, and its name in the infrastructure.
pub(crate) fn place(cluster: &HostedCluster) -> anyhow::Result<(&str, &str)> {
    let Some(aws) = &cluster.spec.platform.aws else {
        bail!("the hosted cluster is not on AWS: it has no instances there");
    };
    let infra_id = cluster.spec.infra_id.as_deref();
    let infra_id = infra_id.context("the hosted cluster has no spec.infraID yet: try again")?;
    if !is_region(&aws.region) {
        bail!("spec.platform.aws.region {:?} is no region", aws.region);
    }
    Ok((&aws.region, infra_id))
}

/// The tags that a response has: elements with a key and a value each, which services spell in two ways.
pub(crate) fn tags(elements: &[Element]) -> Tags {
    let either = |tag: &Element, names: [&str; 2]| {
        let [lower, upper] = names.map(|name| tag.text_at(name).to_owned());
        if lower.is_empty() { upper } else { lower }
    };
    let tags = elements.iter();
    tags.map(|tag| (either(tag, ["key", "Key"]), either(tag, ["value", "Value"])))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_and_tags_say_whose_a_resource_is() {
        let new = |id: &str, region: &str| Scope::new(id, "a", region, Tags::new());
        for (id, region, expected) in [
            ("a-x1", "us-east-1", true),
            (&"x".repeat(LONGEST_INFRA_ID), "us-east-1", true),
            (&"x".repeat(LONGEST_INFRA_ID + 1), "us-east-1", false),
            ("", "us-east-1", false),
            ("-a", "us-east-1", false),
            ("A", "us-east-1", false),
            ("a/b", "us-east-1", false),
            ("a", "evil.example.com/", false),
        ] {
            assert_eq!(new(id, region).is_ok(), expected, "{id} {region}");
        }
        let scope = new("a-x1", "us-east-1").unwrap();
        let tags = scope.tags("a-x1-vpc");
        assert!(scope.owns(&tags));
        assert_eq!(tags["Name"], "a-x1-vpc");
        assert!(!new("a-x2", "us-east-1").unwrap().owns(&tags));
        let shared = Tags::from([(scope.cluster_tag(), "shared".to_owned())]);
        assert!(!scope.owns(&shared) && scope.may_change(&tags));
        let other = new("a-x2", "us-east-1").unwrap();
        assert!(!other.may_change(&tags) && other.may_change(&Tags::new()));
    }

    #[test]
    fn places_are_those_of_clusters_on_aws() {
        let place_of = |spec: &serde_json::Value| {
            let mut cluster = crate::hosted::bare_cluster("a");
            for (field, value) in spec.as_object().unwrap() {
                cluster["spec"][field] = value.clone();
            }
            let cluster: HostedCluster = serde_json::from_value(cluster).unwrap();
            let found = place(&cluster).map(|(region, id)| format!("{region} {id}"));
            found.map_err(|error| error.to_string())
        };
        let aws = |region: &str| {
            serde_json::json!({ "type": "AWS", "aws": { "region": region, "rolesRef": {
                "ingressARN": "", "imageRegistryARN": "", "storageARN": "", "networkARN": "",
                "kubeCloudControllerARN": "", "nodePoolManagementARN": "", "controlPlaneOperatorARN": "",
            } } })
        };
        for (spec, expected) in [
            (
                serde_json::json!({ "infraID": "a-x1", "platform": aws("eu-west-1") }),
                Ok("eu-west-1 a-x1"),
            ),
            (
                serde_json::json!({ "platform": aws("eu-west-1") }),
                Err("no spec.infraID"),
            ),
            (
                serde_json::json!({ "infraID": "a-x1", "platform": aws("x/y") }),
                Err("is no region"),
            ),
            (serde_json::json!({ "infraID": "a-x1" }), Err("not on AWS")),
        ] {
            match (place_of(&spec), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                (Err(error), Err(part)) => assert!(error.contains(part), "{error}"),
                (found, expected) => panic!("{found:?} is not {expected:?}"),
            }
        }
    }

    #[test]
    fn tags_are_read_in_both_spellings() {
        let parse = |text: &str| Element::parse(text).unwrap();
        let expected = Tags::from([("a".to_owned(), "1".to_owned())]);
        for text in [
            "<tagSet><item><key>a</key><value>1</value></item></tagSet>",
            "<Tags><member><Key>a</Key><Value>1</Value></member></Tags>",
        ] {
            assert_eq!(tags(&parse(text).children), expected);
        }
    }
}
