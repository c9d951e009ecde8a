//! The network of a cluster: what should exist, with names and address ranges. Pure.

use std::net::Ipv4Addr;

use super::kind::Kind;
use super::scope::Scope;
use crate::Usage;

/// The most zones: each has two subnets of 4096 addresses, and there are 16 in the range of the network.
const MOST_ZONES: usize = 8;
/// The third octet of the first private subnet.
const PRIVATE: usize = 128;
/// Addresses of a subnet, in steps of the third octet.
const STEP: usize = 16;

/// A network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Network {
    pub(crate) cidr: String,
    pub(crate) zones: Vec<Zone>,
}

/// Its part in an availability zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Zone {
    pub(crate) name: String,
    /// The subnet of nodes, unless they are in the public one.
    pub(crate) private: Option<Subnet>,
    /// The subnet of load balancers.
    pub(crate) public: Subnet,
    /// The zone whose NAT gateway nodes use.
    pub(crate) nat: Option<String>,
}

/// A subnet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Subnet {
    pub(crate) name: String,
    pub(crate) cidr: String,
    /// Tags beside the usual ones.
    pub(crate) tags: Vec<(&'static str, String)>,
}

// === impl Network ===

impl Network {
    /// A network in these zones.
    pub(crate) fn new(
        scope: &Scope,
        cidr: &str,
        zones: &[String],
        public_only: bool,
        single_nat: bool,
    ) -> Result<Self, Usage> {
        let [first, second, ..] = base(cidr)?.octets();
        if zones.len() > MOST_ZONES {
            return Err(Usage::new(&format!(
                "--zones: a network has room for {MOST_ZONES} zones, and there are {}",
                zones.len()
            )));
        }
        let mut seen = zones.to_vec();
        seen.sort();
        seen.dedup();
        if seen.len() != zones.len() {
            return Err(Usage::new(&"--zones: a zone is given twice"));
        }
        let discovery = || ("karpenter.sh/discovery", scope.infra_id.clone());
        let subnet = |name: String, octet: usize, tags| Subnet {
            name,
            cidr: format!("{first}.{second}.{octet}.0/20"),
            tags,
        };
        let zone = |(at, name): (usize, &String)| {
            let private = || {
                let role = ("kubernetes.io/role/internal-elb", "1".to_owned());
                let name = scope.named(&format!("private-{name}"));
                subnet(name, PRIVATE + STEP * at, vec![role, discovery()])
            };
            let mut tags = vec![("kubernetes.io/role/elb", "1".to_owned())];
            if public_only {
                tags.push(discovery());
            }
            let public = scope.named(&format!("public-{name}"));
            let gateway = if single_nat {
                zones.first()
            } else {
                Some(name)
            };
            Zone {
                name: name.clone(),
                private: (!public_only).then(private),
                public: subnet(public, STEP * at, tags),
                nat: gateway.filter(|_| !public_only).cloned(),
            }
        };
        Ok(Self {
            cidr: format!("{first}.{second}.0.0/16"),
            zones: zones.iter().enumerate().map(zone).collect(),
        })
    }

    /// The same without NAT gateways: nodes reach the internet through a proxy.
    pub(crate) fn without_gateways(mut self) -> Self {
        for zone in &mut self.zones {
            zone.nat = None;
        }
        self
    }

    /// The zones that have a NAT gateway, each once.
    pub(crate) fn gateways(&self) -> Vec<&Zone> {
        let has_own = |zone: &&Zone| zone.nat.as_ref() == Some(&zone.name);
        self.zones.iter().filter(has_own).collect()
    }

    /// All resources with names, in the order of their creation.
    pub(crate) fn resources(&self, scope: &Scope) -> Vec<(Kind, String)> {
        let mut all = vec![
            (Kind::Vpc, scope.named(VPC)),
            (Kind::DhcpOptions, scope.named(DHCP_OPTIONS)),
            (Kind::InternetGateway, scope.named(INTERNET_GATEWAY)),
        ];
        for zone in &self.zones {
            let private = zone.private.iter();
            all.extend(private.map(|subnet| (Kind::Subnet, subnet.name.clone())));
            all.push((Kind::Subnet, zone.public.name.clone()));
        }
        for zone in self.gateways() {
            all.push((Kind::Address, address(scope, &zone.name)));
            all.push((Kind::NatGateway, nat_gateway(scope, &zone.name)));
        }
        for zone in self.zones.iter().filter(|zone| zone.private.is_some()) {
            all.push((Kind::RouteTable, private_routes(scope, &zone.name)));
        }
        all.push((Kind::RouteTable, scope.named(PUBLIC_ROUTES)));
        all.push((Kind::VpcEndpoint, scope.named(S3_ENDPOINT)));
        all
    }
}

/// Ends of names.
pub(crate) const VPC: &str = "vpc";
pub(crate) const DHCP_OPTIONS: &str = "dhcp-options";
pub(crate) const INTERNET_GATEWAY: &str = "igw";
pub(crate) const PUBLIC_ROUTES: &str = "public";
pub(crate) const S3_ENDPOINT: &str = "s3";
/// The share of the subnets with the account of the cluster.
pub(crate) const SHARE: &str = "share";
/// The VPC in the account of the cluster by which a private zone is created there for a VPC of another account.
pub(crate) const TEMPORARY_VPC: &str = "temporary-vpc";

pub(crate) fn address(scope: &Scope, zone: &str) -> String {
    scope.named(&format!("eip-{zone}"))
}

pub(crate) fn nat_gateway(scope: &Scope, zone: &str) -> String {
    scope.named(&format!("nat-{zone}"))
}

pub(crate) fn private_routes(scope: &Scope, zone: &str) -> String {
    scope.named(&format!("private-{zone}"))
}

/// The domain that instances of a region have.
pub(crate) fn instance_domain(region: &str) -> String {
    match region {
        "us-east-1" => "ec2.internal".to_owned(),
        region => format!("{region}.compute.internal"),
    }
}

fn base(cidr: &str) -> Result<Ipv4Addr, Usage> {
    let base = cidr.strip_suffix("/16").and_then(|it| it.parse().ok());
    base.filter(|base: &Ipv4Addr| base.octets()[2..] == [0, 0])
        .ok_or_else(|| {
            Usage::new(&format!(
                "--vpc-cidr {cidr:?} is not a valid CIDR of 16 bits (for example 10.0.0.0/16)"
            ))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infra::aws::call::Tags;

    fn scope() -> Scope {
        Scope::new("a-x1", "a", "us-east-1", Tags::new()).unwrap()
    }

    fn network(cidr: &str, zones: &[&str], public: bool, single: bool) -> Result<Network, Usage> {
        let zones: Vec<_> = zones.iter().map(|&zone| zone.to_owned()).collect();
        Network::new(&scope(), cidr, &zones, public, single)
    }

    /// Zones, address ranges of their private and public subnets, and the zones of their NAT gateways.
    #[test]
    fn subnets_follow_the_zones() {
        let rows = |network: &Network| -> Vec<String> {
            let zones = network.zones.iter();
            let row = |zone: &Zone| {
                let private = zone.private.as_ref().map_or("-", |it| &it.cidr);
                let nat = zone.nat.as_deref().unwrap_or("-");
                format!("{} {private} {} {nat}", zone.name, zone.public.cidr)
            };
            zones.map(row).collect()
        };
        for (public, single, expected) in [
            (
                false,
                false,
                [
                    "1a 10.1.128.0/20 10.1.0.0/20 1a",
                    "1b 10.1.144.0/20 10.1.16.0/20 1b",
                ],
            ),
            (
                false,
                true,
                [
                    "1a 10.1.128.0/20 10.1.0.0/20 1a",
                    "1b 10.1.144.0/20 10.1.16.0/20 1a",
                ],
            ),
            (true, false, ["1a - 10.1.0.0/20 -", "1b - 10.1.16.0/20 -"]),
        ] {
            let network = network("10.1.0.0/16", &["1a", "1b"], public, single).unwrap();
            assert_eq!(rows(&network), expected);
            let gateways = network.gateways().len();
            assert_eq!(gateways, if public { 0 } else { 2 - usize::from(single) });
        }
    }

    #[test]
    fn resources_have_names_and_subnets_have_roles() {
        let network = network("10.0.0.0/16", &["1a"], false, false).unwrap();
        let names = network.resources(&scope());
        let names: Vec<_> = names.iter().map(|(_, name)| name.as_str()).collect();
        let expected = [
            "a-x1-vpc",
            "a-x1-dhcp-options",
            "a-x1-igw",
            "a-x1-private-1a",
            "a-x1-public-1a",
            "a-x1-eip-1a",
            "a-x1-nat-1a",
            "a-x1-private-1a",
            "a-x1-public",
            "a-x1-s3",
        ];
        assert_eq!(names, expected);
        let expected_count = expected.len();
        let private = network.zones[0].private.as_ref().unwrap();
        let expected = [
            ("kubernetes.io/role/internal-elb", "1".to_owned()),
            ("karpenter.sh/discovery", "a-x1".to_owned()),
        ];
        assert_eq!(private.tags, expected);
        assert_eq!(network.zones[0].public.tags.len(), 1);
        let proxied = network.without_gateways().resources(&scope());
        let has_gateway =
            |(kind, _): &(Kind, String)| matches!(kind, Kind::Address | Kind::NatGateway);
        assert!(!proxied.iter().any(has_gateway));
        assert_eq!(proxied.len(), expected_count - 2);
    }

    #[test]
    fn ranges_and_zones_that_do_not_fit_are_refused() {
        for (cidr, zones) in [
            ("10.0.0.0/17", vec!["1a"]),
            ("10.0.1.0/16", vec!["1a"]),
            ("fd00::/16", vec!["1a"]),
            ("10.0.0.0", vec!["1a"]),
            ("10.0.0.0/16", vec!["1a", "1a"]),
            (
                "10.0.0.0/16",
                vec!["1", "2", "3", "4", "5", "6", "7", "8", "9"],
            ),
        ] {
            network(cidr, &zones, false, false).unwrap_err();
        }
        assert_eq!(instance_domain("us-east-1"), "ec2.internal");
        assert_eq!(instance_domain("eu-west-1"), "eu-west-1.compute.internal");
    }
}
