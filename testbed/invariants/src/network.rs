//! NetworkPolicies that keep pods from the management cluster's API server.
//!
//! Judged by the policies, as a network that enforces them would: another test sends packets.

use serde_json::{Map, Value};

use crate::access::LABEL;
use crate::pod::Pod;
use crate::{Finding, Invariant, Observed, items, text};

/// A pod without the label must be selected by a policy for its outgoing traffic, and no policy that selects it may let it
/// out to an address of the API server; a pod with the label must get there.
pub(crate) fn isolation(observed: &Observed) -> Vec<Finding> {
    if observed.management_api.is_empty() {
        return Vec::new();
    }
    observed.each_pod(Invariant::ManagementIsolation, |pod| {
        let policies = observed.of_kind("NetworkPolicy");
        let policies = policies.map(|it| &it["spec"]);
        let selecting = policies.filter(|spec| is_for_egress(spec) && selects(spec, pod));
        let selecting: Vec<_> = selecting.collect();
        let admitted = pod.label(LABEL) == "true";
        let mut addresses = observed.management_api.iter();
        let reaches = |address: &String| {
            let mut rules = selecting.iter().flat_map(|spec| items(&spec["egress"]));
            selecting.is_empty() || rules.any(|rule| lets_out(rule, address))
        };
        if admitted {
            let cut = addresses.find(|address| !reaches(address))?;
            return Some(format!(
                "no policy lets it out to the management API at {cut}"
            ));
        }
        let open = addresses.find(|address| reaches(address))?;
        Some(format!(
            "the policies let it out to the management API at {open}"
        ))
    })
}

fn is_for_egress(spec: &Value) -> bool {
    items(&spec["policyTypes"]).iter().any(|it| it == "Egress")
}

fn selects(spec: &Value, pod: &Pod<'_>) -> bool {
    let selector = &spec["podSelector"];
    let exact = selector["matchLabels"].as_object();
    let mut exact = exact.into_iter().flat_map(Map::iter);
    let mut expressions = items(&selector["matchExpressions"]).iter();
    exact.all(|(key, value)| pod.label(key) == text(value))
        && expressions.all(|expression| {
            let found = pod.label(text(&expression["key"]));
            let listed = items(&expression["values"]).iter().any(|it| it == found);
            match text(&expression["operator"]) {
                "In" => listed,
                "NotIn" => !listed,
                "Exists" => !found.is_empty(),
                "DoesNotExist" => found.is_empty(),
                _ => false,
            }
        })
}

/// Whether a rule admits an address outside of the cluster's pods. Pod and namespace selectors never do.
fn lets_out(rule: &Value, address: &str) -> bool {
    let to = items(&rule["to"]);
    to.is_empty()
        || to.iter().any(|peer| {
            let block = &peer["ipBlock"];
            let holds = |range: &Value| contains(text(range), address);
            holds(&block["cidr"]) && !items(&block["except"]).iter().any(holds)
        })
}

/// Whether a range in CIDR notation contains an address.
fn contains(range: &str, address: &str) -> bool {
    let Some((network, bits)) = range.split_once('/') else {
        return false;
    };
    let (Ok(network), Ok(address), Ok(bits)) = (
        network.parse::<std::net::IpAddr>(),
        address.parse::<std::net::IpAddr>(),
        bits.parse::<u32>(),
    ) else {
        return false;
    };
    let (network, address, width) = match (network, address) {
        (std::net::IpAddr::V4(network), std::net::IpAddr::V4(address)) => (
            u128::from(network.to_bits()),
            u128::from(address.to_bits()),
            32,
        ),
        (std::net::IpAddr::V6(network), std::net::IpAddr::V6(address)) => {
            (network.to_bits(), address.to_bits(), 128)
        }
        _ => return false,
    };
    let shift = width - bits.min(width);
    network.checked_shr(shift) == address.checked_shr(shift) || shift == 128
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_contain_their_addresses() {
        for (range, address, expected) in [
            ("0.0.0.0/0", "10.0.0.1", true),
            ("10.0.0.1/32", "10.0.0.1", true),
            ("10.0.0.1/32", "10.0.0.2", false),
            ("10.0.0.0/30", "10.0.0.3", true),
            ("::/0", "10.0.0.1", false),
            ("::/0", "fd00::1", true),
            ("fd00::/64", "fd00::1", true),
            ("fd01::/64", "fd00::1", false),
            ("10.0.0.0", "10.0.0.0", false),
        ] {
            assert_eq!(contains(range, address), expected, "{range} {address}");
        }
    }
}
