//! Address ranges: single or dual stack, and disjoint.

use std::net::IpAddr;

use api::hypershift::v1beta1::networking::ClusterNetworking;
use api::hypershift::v1beta1::services::ServiceType;

use super::Problems;
use super::services::name;
use crate::facts::Facts;

/// A range of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    address: IpAddr,
    prefix: u8,
}

/// A range, with the field that it is from.
type Named = (String, Range);

/// Problems of the networks.
pub(super) fn problems(facts: &Facts) -> Problems {
    let networking = &facts.cluster.spec.networking;
    let (ranges, mut problems) = ranges(networking);
    problems.extend(overlaps(&ranges));
    problems.extend(families(networking));
    problems.extend(advertised(networking, &ranges));
    problems.extend(node_port_addresses(facts, &ranges));
    problems
}

fn ranges(networking: &ClusterNetworking) -> (Vec<Named>, Problems) {
    let pods = networking
        .cluster_network
        .iter()
        .map(|it| ("clusterNetwork", &it.cidr.0));
    let services = networking
        .service_network
        .iter()
        .map(|it| ("serviceNetwork", &it.cidr.0));
    let nodes = networking
        .machine_network
        .iter()
        .map(|it| ("machineNetwork", &it.cidr.0));
    let (mut ranges, mut problems) = (Vec::new(), Problems::new());
    for (field, text) in pods.chain(services).chain(nodes) {
        let field = format!("spec.networking.{field}");
        match Range::parse(text) {
            Some(range) => ranges.push((format!("{field} ({text})"), range)),
            None => problems.push(format!(
                "{field} has {text:?}, which is not a valid CIDR (for example 10.0.0.0/16)"
            )),
        }
    }
    (ranges, problems)
}

fn overlaps(ranges: &[Named]) -> Problems {
    let mut problems = Problems::new();
    for (index, (one, range)) in ranges.iter().enumerate() {
        for (other, other_range) in &ranges[index + 1..] {
            if range.overlaps(*other_range) {
                problems.push(format!("{one} and {other} overlap: use disjoint ranges"));
            }
        }
    }
    problems
}

/// Pods, services and nodes have the same families of addresses.
fn families(networking: &ClusterNetworking) -> Problems {
    let of = |texts: Vec<&String>| {
        let ranges = texts.into_iter().filter_map(|text| Range::parse(text));
        let six: Vec<bool> = ranges.map(|it| it.address.is_ipv6()).collect();
        (six.contains(&false), six.contains(&true))
    };
    let pods = of(networking
        .cluster_network
        .iter()
        .map(|it| &it.cidr.0)
        .collect());
    let services = of(networking
        .service_network
        .iter()
        .map(|it| &it.cidr.0)
        .collect());
    if pods == services {
        return Problems::new();
    }
    vec![
        "spec.networking.clusterNetwork and serviceNetwork have different IP families: use IPv4, IPv6 or dual stack for both"
            .to_owned(),
    ]
}

fn advertised(networking: &ClusterNetworking, ranges: &[Named]) -> Problems {
    let server = networking.api_server.as_ref();
    let Some(text) = server.and_then(|it| it.advertise_address.as_deref()) else {
        return Problems::new();
    };
    let field = "spec.networking.apiServer.advertiseAddress";
    let Ok(address) = text.parse::<IpAddr>() else {
        return vec![format!(
            "{field} is {text:?}, which is not a valid IP address"
        )];
    };
    let within = ranges.iter().filter(|(_, range)| range.holds(address));
    within
        .map(|(name, _)| {
            format!("{field} {text} is in {name}: use an address outside the cluster's networks")
        })
        .collect()
}

/// Addresses of nodes and of the guest's Services must not overlap.
fn node_port_addresses(facts: &Facts, ranges: &[Named]) -> Problems {
    let services = &facts.cluster.spec.services;
    let addresses = services.iter().filter_map(|it| {
        let port = it.service_publishing_strategy.node_port.as_ref()?;
        Some((it.service, port.address.parse::<IpAddr>().ok()?))
    });
    let inside = |(service, address): (ServiceType, IpAddr)| {
        let range = ranges
            .iter()
            .find(|(field, range)| field.contains("serviceNetwork") && range.holds(address))?;
        let (service, range) = (name(service), &range.0);
        Some(format!(
            "spec.services publishes {service} at {address}, which is in {range}: use the address of a node"
        ))
    };
    addresses.filter_map(inside).collect()
}

// === impl Range ===

impl Range {
    fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = text.split_once('/')?;
        let address: IpAddr = address.parse().ok()?;
        let prefix: u8 = prefix.parse().ok()?;
        let longest = if address.is_ipv6() { 128 } else { 32 };
        (prefix <= longest).then_some(Self { address, prefix })
    }

    fn overlaps(self, other: Self) -> bool {
        let prefix = self.prefix.min(other.prefix);
        let cut = |range: Self| Self { prefix, ..range }.network();
        cut(self) == cut(other)
    }

    fn holds(self, address: IpAddr) -> bool {
        self.address.is_ipv6() == address.is_ipv6()
            && self.network() == Self { address, ..self }.network()
    }

    /// The bits that count, with the family.
    fn network(self) -> (bool, u128) {
        let (six, bits, length) = match self.address {
            IpAddr::V4(address) => (false, u128::from(u32::from(address)), 32),
            IpAddr::V6(address) => (true, u128::from(address), 128),
        };
        let drop = u32::saturating_sub(length, u32::from(self.prefix));
        (six, bits.checked_shr(drop).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_overlap_when_one_contains_the_other() {
        let range = |text| Range::parse(text).unwrap();
        for (one, other, expected) in [
            ("10.0.0.0/8", "10.1.0.0/16", true),
            ("10.0.0.0/16", "10.1.0.0/16", false),
            ("0.0.0.0/0", "192.0.2.0/24", true),
            ("0.0.0.0/0", "::/0", false),
            ("fd00::/48", "fd00:0:0:1::/64", true),
            ("10.132.0.0/14", "10.135.255.0/24", true),
        ] {
            assert_eq!(range(one).overlaps(range(other)), expected, "{one} {other}");
            assert_eq!(range(other).overlaps(range(one)), expected, "{other} {one}");
        }
        for text in ["10.0.0.0", "10.0.0.0/33", "a/8", "::/129"] {
            assert_eq!(Range::parse(text), None, "{text}");
        }
    }
}
