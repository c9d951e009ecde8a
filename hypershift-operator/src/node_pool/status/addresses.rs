//! Whether the addresses of machines are distinct from those of pods. Pure.

use std::net::IpAddr;

use ipnet::IpNet;

use super::summary::cut;
use crate::node_pool::facts::Facts;
use crate::node_pool::observed::Machine;

/// The longest message, in bytes.
const LONGEST: usize = 256;

/// The machines that have addresses of the cluster network only. A machine with an address outside of it works.
pub(super) fn conflict(facts: &Facts) -> Option<String> {
    let ranges = facts.cluster.spec.networking.cluster_network.iter();
    let ranges: Vec<IpNet> = ranges.filter_map(|it| it.cidr.0.parse().ok()).collect();
    let conflicts = facts.machines.iter().filter_map(|machine| {
        let addresses = addresses(machine);
        let is_inside = |it: &IpAddr| ranges.iter().any(|range| range.contains(it));
        let is_conflict = !addresses.is_empty() && addresses.iter().all(is_inside);
        let addresses: Vec<_> = addresses.iter().map(ToString::to_string).collect();
        is_conflict.then(|| format!("{} ({})", machine.name, addresses.join(", ")))
    });
    let conflicts: Vec<_> = conflicts.collect();
    if conflicts.is_empty() {
        return None;
    }
    let message = format!(
        "machines have addresses of spec.networking.clusterNetwork only, which pods have, too: create the HostedCluster \
         with another clusterNetwork. Machines: {}",
        conflicts.join("; ")
    );
    Some(cut(message, LONGEST, "..."))
}

/// Its addresses that other machines can use.
fn addresses(machine: &Machine) -> Vec<IpAddr> {
    let addresses = machine.addresses.iter().filter_map(|it| it.parse().ok());
    addresses.filter(|it| !is_link_local(*it)).collect()
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node_pool::fixtures;

    #[test]
    fn machines_with_addresses_of_pods_only_are_reported() {
        for (name, addresses, expected) in [
            ("none", &[] as &[&str], false),
            ("outside", &["10.0.0.7"], false),
            ("inside", &["10.132.0.7"], true),
            ("one outside", &["10.132.0.7", "10.0.0.7"], false),
            (
                "link-local ones",
                &["10.132.0.7", "169.254.1.7", "fe80::7"],
                true,
            ),
            ("link-local ones only", &["169.254.1.7", "fe80::7"], false),
            ("all inside", &["10.132.0.7", "10.133.0.7"], true),
            ("another family", &["10.132.0.7", "fd01::7"], false),
            ("no address", &["a.example.com"], false),
        ] {
            let mut facts = fixtures::facts();
            let mut machine = fixtures::machine("a");
            machine.addresses = addresses.iter().map(|it| (*it).to_owned()).collect();
            facts.machines = vec![fixtures::machine("b"), machine];
            let found = conflict(&facts);
            assert_eq!(found.is_some(), expected, "{name}: {found:?}");
            if let Some(message) = found {
                assert!(message.contains("Machines: a (10.13"), "{name}: {message}");
            }
        }
    }

    #[test]
    fn the_message_has_a_limit() {
        let mut facts = fixtures::facts();
        let machine = |number: usize| Machine {
            addresses: vec!["10.132.0.7".to_owned()],
            ..fixtures::machine(&format!("machine-{number}"))
        };
        facts.machines = (0..99).map(machine).collect();
        let message = conflict(&facts).unwrap();
        assert_eq!(message.len(), LONGEST);
        assert!(message.ends_with("..."), "{message}");
    }
}
