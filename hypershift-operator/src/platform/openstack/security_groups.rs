//! What the security group of the nodes lets in.

use serde_json::{Value, json};

/// From where traffic comes that users and other nodes send.
const ANY: &str = "0.0.0.0/0";
/// A name, a protocol, and the first and last port.
type Opening = (&'static str, &'static str, Option<(u16, u16)>);
/// What other machines may send.
const FROM_MACHINES: [Opening; 5] = [
    ("esp", "esp", None),
    ("icmp", "icmp", None),
    ("router", "tcp", Some((1936, 1936))),
    ("ssh", "tcp", Some((22, 22))),
    ("vrrp", "vrrp", None),
];
/// What all may send.
const FROM_ANY: [Opening; 8] = [
    ("http", "tcp", Some((80, 80))),
    ("https", "tcp", Some((443, 443))),
    ("geneve", "udp", Some((6081, 6081))),
    ("ike", "udp", Some((500, 500))),
    ("ike-nat", "udp", Some((4500, 4500))),
    ("internal", "tcp", Some((9000, 9999))),
    ("internal-udp", "udp", Some((9000, 9999))),
    ("vxlan", "udp", Some((4789, 4789))),
];

/// The rules, for machines in these networks.
pub(super) fn rules(machines: &[&str]) -> Vec<Value> {
    let of_machines = machines.iter().enumerate().flat_map(|(index, network)| {
        // The first network has the names that other versions of the operator use; names are distinct.
        let suffix = match index {
            0 => String::new(),
            index => format!("-{index}"),
        };
        let opened = FROM_MACHINES.iter();
        opened.map(move |opening| rule(opening, &suffix, network))
    });
    let of_any = FROM_ANY.iter().map(|opening| rule(opening, "", ANY));
    of_machines.chain(of_any).collect()
}

fn rule(&(name, protocol, ports): &Opening, suffix: &str, from: &str) -> Value {
    let family = if from.contains(':') { "IPv6" } else { "IPv4" };
    let mut rule = json!({
        "name": format!("{name}-ingress{suffix}"),
        "description": "Managed by the Hypershift Control Plane Operator",
        "direction": "ingress",
        "etherType": family,
        "protocol": protocol,
        "remoteIPPrefix": from,
    });
    if let Some((first, last)) = ports {
        rule["portRangeMin"] = json!(first);
        rule["portRangeMax"] = json!(last);
    }
    rule
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn nodes_are_reached_from_machines_and_by_users() {
        let rules = rules(&["10.0.0.0/16", "fd00::/64"]);
        let of = |name: &str| rules.iter().find(|rule| rule["name"] == name).unwrap();
        for (name, protocol, ports, from, family) in [
            ("ssh-ingress", "tcp", json!([22, 22]), "10.0.0.0/16", "IPv4"),
            ("ssh-ingress-1", "tcp", json!([22, 22]), "fd00::/64", "IPv6"),
            (
                "vrrp-ingress",
                "vrrp",
                json!([null, null]),
                "10.0.0.0/16",
                "IPv4",
            ),
            ("https-ingress", "tcp", json!([443, 443]), ANY, "IPv4"),
            (
                "internal-udp-ingress",
                "udp",
                json!([9000, 9999]),
                ANY,
                "IPv4",
            ),
        ] {
            let rule = of(name);
            assert_eq!(rule["protocol"], protocol, "{name}");
            let found = json!([rule["portRangeMin"], rule["portRangeMax"]]);
            assert_eq!(found, ports, "{name}");
            assert_eq!(rule["remoteIPPrefix"], from, "{name}");
            assert_eq!(rule["etherType"], family, "{name}");
        }
        let names: BTreeSet<_> = rules.iter().map(|it| it["name"].as_str()).collect();
        assert_eq!(names.len(), 2 * FROM_MACHINES.len() + FROM_ANY.len());
    }
}
