//! The network of a cluster: its resources, their names and documents. Pure.

use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::scope::{Scope, is_region};
use crate::Usage;

/// The range whose hosts reach the kubelets.
const INTERNAL: &str = "10.0.0.0/8";
/// Lengths of prefixes of subnets on Google Cloud.
const PREFIXES: std::ops::RangeInclusive<u32> = 8..=29;
/// The port of the kubelet.
const KUBELET: &str = "10250";

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NetworkRequest {
    pub(super) region: String,
    /// Address range of the subnet.
    pub(super) cidr: String,
}

/// A kind of resource, in the order of creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Network,
    Firewall,
    Subnet,
    Router,
}

/// The network of an infrastructure.
#[derive(Debug, Clone, Copy)]
pub(super) struct Network<'a> {
    pub(super) scope: &'a Scope,
    pub(super) region: &'a str,
}

// === impl NetworkRequest ===

impl NetworkRequest {
    /// Checks region and address range.
    pub(crate) fn new(region: &str, cidr: &str) -> Result<Self, Usage> {
        check_region(region)?;
        if !is_range(cidr) {
            return Err(Usage::new(&format!(
                "--vpc-cidr {cidr:?}: write an address range such as 10.0.0.0/24, of 8 to 29 bits"
            )));
        }
        Ok(Self {
            region: region.to_owned(),
            cidr: cidr.to_owned(),
        })
    }

    /// The ranges whose hosts reach the kubelets.
    fn sources(&self) -> Vec<&str> {
        if self.cidr.starts_with("10.") {
            return vec![INTERNAL];
        }
        vec![INTERNAL, self.cidr.as_str()]
    }
}

// === impl Kind ===

impl Kind {
    pub(super) const ALL: [Self; 4] = [Self::Network, Self::Firewall, Self::Subnet, Self::Router];

    pub(super) fn noun(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Firewall => "firewall rule",
            Self::Subnet => "subnet",
            Self::Router => "router",
        }
    }

    fn suffix(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Firewall => "allow-kubelet",
            Self::Subnet => "subnet",
            Self::Router => "router",
        }
    }

    fn collection(self) -> &'static str {
        match self {
            Self::Network => "networks",
            Self::Firewall => "firewalls",
            Self::Subnet => "subnetworks",
            Self::Router => "routers",
        }
    }
}

// === impl Network ===

impl Network<'_> {
    /// Where resources of a kind are: in the whole project, or in the region.
    pub(super) fn place(&self, kind: Kind) -> String {
        match kind {
            Kind::Network | Kind::Firewall => "global".to_owned(),
            Kind::Subnet | Kind::Router => format!("regions/{}", self.region),
        }
    }

    pub(super) fn name(&self, kind: Kind) -> String {
        self.scope.named(kind.suffix())
    }

    pub(super) fn nat_name(&self) -> String {
        self.scope.named("nat")
    }

    fn path(&self, kind: Kind) -> String {
        format!(
            "{}/{}/{}",
            self.place(kind),
            kind.collection(),
            self.name(kind)
        )
    }

    /// The URL of the resource.
    pub(super) fn url(&self, kind: Kind) -> String {
        self.scope.compute(&self.path(kind))
    }

    /// The URL of the collection that it is created in.
    pub(super) fn collection(&self, kind: Kind) -> String {
        let path = format!("{}/{}", self.place(kind), kind.collection());
        self.scope.compute(&path)
    }

    /// The link to the resource.
    pub(super) fn link(&self, kind: Kind) -> String {
        self.scope.link(&self.path(kind))
    }

    /// The document that it is created with.
    pub(super) fn body(&self, kind: Kind, request: &NetworkRequest) -> Value {
        let mut body = json!({ "name": self.name(kind), "description": self.scope.description() });
        if kind != Kind::Network {
            body["network"] = json!(self.link(Kind::Network));
        }
        match kind {
            Kind::Network => body["autoCreateSubnetworks"] = json!(false),
            Kind::Firewall => {
                body["direction"] = json!("INGRESS");
                body["allowed"] = json!([{ "IPProtocol": "tcp", "ports": [KUBELET] }]);
                body["sourceRanges"] = json!(request.sources());
            }
            Kind::Subnet => {
                body["ipCidrRange"] = json!(request.cidr);
                body["privateIpGoogleAccess"] = json!(true);
            }
            Kind::Router => {}
        }
        body
    }

    /// The NAT gateway, which is a part of the router.
    pub(super) fn nat(&self) -> Value {
        json!({
            "name": self.nat_name(),
            "natIpAllocateOption": "AUTO_ONLY",
            "sourceSubnetworkIpRangesToNat": "LIST_OF_SUBNETWORKS",
            "subnetworks": [{
                "name": self.link(Kind::Subnet),
                "sourceIpRangesToNat": ["ALL_IP_RANGES"],
            }],
        })
    }

    /// The NAT gateways of a router that are not ours, and whether ours is there.
    pub(super) fn nats(&self, router: &Value) -> (Vec<Value>, bool) {
        let nats = router["nats"].as_array().cloned().unwrap_or_default();
        let name = self.nat_name();
        let (own, others): (Vec<_>, Vec<_>) = nats
            .into_iter()
            .partition(|nat| nat["name"].as_str() == Some(name.as_str()));
        (others, !own.is_empty())
    }

    /// Why a resource that exists cannot be used, and what to do.
    pub(super) fn problem(
        &self,
        kind: Kind,
        found: &Value,
        request: &NetworkRequest,
    ) -> Option<String> {
        let (noun, name) = (kind.noun(), self.name(kind));
        if !self.scope.owns(found) {
            let foreign = Scope::foreign(noun, &name, found);
            return Some(format!("{foreign}: choose another --infra-id"));
        }
        let network = found["network"].as_str().unwrap_or_default();
        let end = format!(
            "/projects/{}/{}",
            self.scope.project,
            self.path(Kind::Network)
        );
        if kind != Kind::Network && !network.ends_with(&end) {
            return Some(format!(
                "{noun} {name} is in another network ({network}): run destroy infra gcp first, or choose another --infra-id"
            ));
        }
        let range = found["ipCidrRange"].as_str().unwrap_or_default();
        if kind == Kind::Subnet && range != request.cidr {
            return Some(format!(
                "{noun} {name} exists with the address range {range}: pass --vpc-cidr {range}, or run destroy infra gcp first"
            ));
        }
        None
    }
}

/// Refuses what is no region: it becomes a part of URLs.
pub(crate) fn check_region(region: &str) -> Result<(), Usage> {
    if is_region(region) {
        return Ok(());
    }
    Err(Usage::new(&format!(
        "--region {region:?} is not a region of Google Cloud (for example us-central1)"
    )))
}

/// Whether a text is a range of IPv4 addresses for a subnet.
fn is_range(cidr: &str) -> bool {
    let parsed = cidr.split_once('/').and_then(|(address, bits)| {
        let address = address.parse::<Ipv4Addr>().ok()?;
        Some((u32::from(address), bits.parse::<u32>().ok()?))
    });
    parsed.is_some_and(|(address, bits)| {
        PREFIXES.contains(&bits) && address & (u32::MAX >> bits) == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_regions_that_do_not_fit_are_refused() {
        for (region, cidr, expected) in [
            ("us-central1", "10.0.0.0/24", true),
            ("us-central1", "192.168.128.0/17", true),
            ("us-central1", "10.0.0.1/24", false),
            ("us-central1", "10.0.0.0/30", false),
            ("us-central1", "10.0.0.0/0", false),
            ("us-central1", "10.0.0.0/33", false),
            ("us-central1", "10.0.0.0", false),
            ("us-central1", "fd00::/64", false),
            ("us-central1", "", false),
            ("nowhere", "10.0.0.0/24", false),
        ] {
            let request = NetworkRequest::new(region, cidr);
            assert_eq!(request.is_ok(), expected, "{region} {cidr}");
        }
    }

    #[test]
    fn kubelets_are_reached_from_the_subnet() {
        for (cidr, expected) in [
            ("10.1.0.0/16", &[INTERNAL][..]),
            ("192.168.0.0/16", &[INTERNAL, "192.168.0.0/16"]),
        ] {
            let request = NetworkRequest::new("us-central1", cidr).unwrap();
            assert_eq!(request.sources(), expected);
        }
    }

    #[test]
    fn what_exists_is_used_only_if_it_fits() {
        let scope = Scope::new("a-x1", "project-1").unwrap();
        let request = NetworkRequest::new("us-central1", "10.0.0.0/24").unwrap();
        let network = Network {
            scope: &scope,
            region: &request.region,
        };
        let problem = |kind: Kind, field: &str, value: &str| {
            let mut found = network.body(kind, &request);
            found[field] = json!(value);
            network.problem(kind, &found, &request).unwrap_or_default()
        };
        for kind in Kind::ALL {
            assert_eq!(problem(kind, "more", ""), "", "{kind:?}");
            let foreign = problem(kind, "description", "HyperShift cluster b-x2");
            assert!(foreign.contains("belongs to something else"), "{foreign}");
        }
        let other =
            "https://www.googleapis.com/compute/v1/projects/project-1/global/networks/default";
        assert!(problem(Kind::Router, "network", other).contains("in another network"));
        assert!(
            problem(Kind::Subnet, "ipCidrRange", "10.0.0.0/20").contains("--vpc-cidr 10.0.0.0/20")
        );
    }
}
