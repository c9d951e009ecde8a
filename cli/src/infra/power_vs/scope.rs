//! What an infrastructure is called, where it is, and the tags of what belongs to it. Pure.

use super::regions;
use crate::Usage;
use crate::create::text;
use crate::infra::aws::Domain;

/// The longest name, so that names of resources that are made of it have at most 63 characters.
const LONGEST_INFRA_ID: usize = 27;
/// The beginning of the tag that says whose a resource is.
const CLUSTER_TAG: &str = "kubernetes.io-cluster-";
const OWNED: &str = ":owned";

/// An infrastructure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scope {
    pub(crate) infra_id: String,
    /// Name of the cluster.
    pub(crate) name: String,
    pub(crate) domain: Domain,
    pub(crate) place: Place,
}

/// Where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// Name of the resource group.
    pub(crate) resource_group: String,
    /// Region of Power VS.
    pub(crate) region: String,
    /// Zone of that region.
    pub(crate) zone: String,
    pub(crate) vpc_region: String,
}

/// Resources that exist and are used, but not owned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Reused {
    /// Identifier of the workspace.
    pub(crate) workspace: Option<String>,
    /// Name of the VPC.
    pub(crate) vpc: Option<String>,
    /// Name of the transit gateway.
    pub(crate) gateway: Option<String>,
}

/// Whose a resource is, by its tags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Owner {
    This,
    /// No tag says it: its creation was interrupted, or tags could not be attached.
    Unknown,
    /// Of another cluster, by its tag.
    Other(String),
}

// === impl Scope ===

impl Scope {
    /// Checks the names, which become parts of others and of URLs.
    pub(crate) fn new(
        infra_id: &str,
        name: &str,
        domain: Domain,
        place: Place,
    ) -> Result<Self, Usage> {
        if !text::is_name(infra_id) || infra_id.len() > LONGEST_INFRA_ID {
            return Err(Usage::new(&format!(
                "--infra-id {infra_id:?}: use lower-case letters, digits and dashes, at most {LONGEST_INFRA_ID}, with no \
                 dash at either end"
            )));
        }
        if !text::is_name(name) {
            return Err(Usage::new(&format!(
                "--name {name:?}: use lower-case letters, digits and dashes, with no dash at either end"
            )));
        }
        for (flag, value) in [
            ("--region", &place.region),
            ("--zone", &place.zone),
            ("--vpc-region", &place.vpc_region),
        ] {
            if !text::is_name(value) {
                return Err(Usage::new(&format!(
                    "{flag} {value:?} is no name of a region or of a zone (for example us-south)"
                )));
            }
        }
        if place.resource_group.is_empty() {
            return Err(Usage::new(
                &"--resource-group: write the name of a resource group",
            ));
        }
        Ok(Self {
            infra_id: infra_id.to_owned(),
            name: name.to_owned(),
            domain,
            place,
        })
    }

    /// Refuses places where nothing can be created.
    pub(crate) fn check_zone(&self) -> Result<(), Usage> {
        let zone = &self.place.zone;
        if regions::is_supported(zone) {
            return Ok(());
        }
        Err(Usage::new(&format!(
            "--zone {zone}: infrastructure cannot be created in this zone: choose another one"
        )))
    }

    /// The tag that says whose a resource is.
    pub(crate) fn cluster_tag(&self) -> String {
        format!("{CLUSTER_TAG}{}{OWNED}", self.infra_id)
    }

    /// Whose a resource is. Tags do not differ in case.
    pub(super) fn owner(&self, tags: &[String]) -> Owner {
        let own = self.cluster_tag();
        if tags.iter().any(|tag| tag.eq_ignore_ascii_case(&own)) {
            return Owner::This;
        }
        let is_of_cluster = |tag: &&String| tag.to_ascii_lowercase().starts_with(CLUSTER_TAG);
        match tags.iter().find(is_of_cluster) {
            Some(tag) => Owner::Other(tag.clone()),
            None => Owner::Unknown,
        }
    }

    fn named(&self, suffix: &str) -> String {
        format!("{}-{suffix}", self.infra_id)
    }

    pub(crate) fn vpc(&self) -> String {
        self.named("vpc")
    }

    pub(crate) fn subnet(&self) -> String {
        self.named("vpc-sn")
    }

    pub(crate) fn workspace(&self) -> String {
        self.named("pvs")
    }

    pub(crate) fn gateway(&self) -> String {
        self.named("tg")
    }

    /// The connections of the gateway to the VPC and to the workspace.
    pub(crate) fn connections(&self) -> [String; 2] {
        ["vpc-con", "pvs-con"].map(|suffix| self.named(&format!("tg-{suffix}")))
    }

    /// The network that the DHCP server of this name creates.
    pub(crate) fn dhcp_network(&self) -> String {
        format!("DHCPSERVER{}_Private", self.infra_id)
    }

    /// The instance of Cloud Object Storage that the image registry of the cluster creates.
    pub(crate) fn registry(&self) -> String {
        self.named("image-registry")
    }

    /// A service ID, by what follows the cluster's name in that of its Secret.
    pub(crate) fn service_id(&self, suffix: &str) -> String {
        self.named(suffix)
    }

    /// The record of the ingress.
    pub(crate) fn record(&self) -> String {
        format!("*.apps.{}", self.domain.cluster())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An infrastructure in us-south.
    pub(in super::super) fn scope(infra_id: &str, name: &str) -> Scope {
        let domain = Domain::new("example.com", None, name).unwrap();
        let place = Place {
            resource_group: "group".to_owned(),
            region: "us-south".to_owned(),
            zone: "us-south".to_owned(),
            vpc_region: "us-south".to_owned(),
        };
        Scope::new(infra_id, name, domain, place).unwrap()
    }

    #[test]
    fn names_are_checked() {
        let valid = scope("a-x1", "a");
        let new = |infra_id: &str, place: Place| {
            Scope::new(infra_id, "a", valid.domain.clone(), place).is_ok()
        };
        for (infra_id, expected) in [
            ("a-x1", true),
            (&"x".repeat(LONGEST_INFRA_ID), true),
            (&"x".repeat(LONGEST_INFRA_ID + 1), false),
            ("", false),
            ("-a", false),
            ("A", false),
            ("a/b", false),
        ] {
            assert_eq!(new(infra_id, valid.place.clone()), expected, "{infra_id}");
        }
        for wrong in [
            Place {
                region: "evil.example.com/".to_owned(),
                ..valid.place.clone()
            },
            Place {
                vpc_region: String::new(),
                ..valid.place.clone()
            },
            Place {
                zone: "a b".to_owned(),
                ..valid.place.clone()
            },
            Place {
                resource_group: String::new(),
                ..valid.place.clone()
            },
        ] {
            assert!(!new("a", wrong.clone()), "{wrong:?}");
        }
    }

    #[test]
    fn the_zone_without_support_is_refused() {
        let mut scope = scope("a-x1", "a");
        scope.check_zone().unwrap();
        scope.place.zone = "wdc06".to_owned();
        let error = scope.check_zone().unwrap_err().to_string();
        assert!(error.contains("--zone wdc06"), "{error}");
    }

    #[test]
    fn tags_say_whose_a_resource_is() {
        let scope = scope("a-x1", "a");
        let other = "kubernetes.io-cluster-b-x2:owned";
        for (tags, expected) in [
            (vec![], Owner::Unknown),
            (vec!["Name:a-x1-vpc", "team:a"], Owner::Unknown),
            (vec!["kubernetes.io-cluster-a-x1:owned"], Owner::This),
            (vec!["Kubernetes.io-Cluster-a-x1:owned"], Owner::This),
            (vec![other], Owner::Other(other.to_owned())),
            (vec![other, "kubernetes.io-cluster-a-x1:owned"], Owner::This),
        ] {
            let tags: Vec<_> = tags.into_iter().map(str::to_owned).collect();
            assert_eq!(scope.owner(&tags), expected, "{tags:?}");
        }
    }
}
