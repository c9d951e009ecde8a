//! NetworkPolicies as rules of nftables. Pure.
//!
//! Each pod that a policy isolates has a chain for each direction that it isolates: allowed traffic returns to where
//! it was called from, and other traffic is dropped at the end.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::Value;

use super::selector::fits;

/// The table.
const TABLE: &str = "inet testbed_policies";

/// A direction of traffic, as a policy has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Ingress,
    Egress,
}

// === impl Direction ===

impl Direction {
    const ALL: [Self; 2] = [Self::Ingress, Self::Egress];

    fn kind(self) -> &'static str {
        match self {
            Self::Ingress => "Ingress",
            Self::Egress => "Egress",
        }
    }

    fn rules(self, policy: &Value) -> impl Iterator<Item = &Value> {
        let field = match self {
            Self::Ingress => "ingress",
            Self::Egress => "egress",
        };
        policy["spec"][field].as_array().into_iter().flatten()
    }

    fn peers(self, rule: &Value) -> Option<&Vec<Value>> {
        let field = match self {
            Self::Ingress => "from",
            Self::Egress => "to",
        };
        rule[field].as_array().filter(|peers| !peers.is_empty())
    }

    /// Whether a policy isolates in this direction.
    fn isolates(self, policy: &Value) -> bool {
        match policy["spec"]["policyTypes"].as_array() {
            Some(types) => types.iter().any(|kind| kind == self.kind()),
            None => self == Self::Ingress || self.rules(policy).next().is_some(),
        }
    }

    /// The address of the pod that is isolated, and of its peer.
    fn sides(self) -> (&'static str, &'static str) {
        match self {
            Self::Ingress => ("ip daddr", "ip saddr"),
            Self::Egress => ("ip saddr", "ip daddr"),
        }
    }
}

/// The rules of all policies, as a file for nft. Traffic from nodes is allowed: on its own node it never comes
/// here, and on others it must not fare worse.
pub(super) fn text(
    policies: &[Value],
    pods: &[Value],
    namespaces: &[Value],
    nodes: &[String],
) -> String {
    let mut jumps = String::new();
    let mut chains = String::new();
    for (number, pod) in pods.iter().enumerate() {
        let Some(address) = own_address(pod) else {
            continue;
        };
        for direction in Direction::ALL {
            let isolating: Vec<&Value> = policies
                .iter()
                .filter(|policy| concerns(policy, pod) && direction.isolates(policy))
                .collect();
            if isolating.is_empty() {
                continue;
            }
            let chain = format!("{}{number}", direction.kind().to_lowercase());
            let (own, peer) = direction.sides();
            let _ = writeln!(jumps, "    {own} {address} jump {chain}");
            let _ = writeln!(chains, "  chain {chain} {{");
            for policy in isolating {
                for rule in direction.rules(policy) {
                    for allowed in allowed(direction, rule, policy, pod, (pods, namespaces), peer) {
                        let _ = writeln!(chains, "    {allowed} return");
                    }
                }
            }
            chains.push_str("    drop\n  }\n");
        }
    }
    let hook = |name: &str, jumps: &str| {
        format!(
            "  chain {name}_checks {{\n    type filter hook {name} priority filter - 5; policy accept;\n    \
             ct state established,related accept\n{jumps}  }}\n"
        )
    };
    // What a pod sends to its own node is not forwarded.
    let to_node: String = jumps
        .split_inclusive('\n')
        .filter(|line| line.contains("ip saddr"))
        .collect();
    format!(
        "table {TABLE}\ndelete table {TABLE}\ntable {TABLE} {{\n{chains}{}{}}}\n",
        hook("forward", &(of_nodes(nodes) + &jumps)),
        hook("input", &to_node)
    )
}

/// Lets in what is from the nodes' own addresses.
fn of_nodes(nodes: &[String]) -> String {
    if nodes.is_empty() {
        return String::new();
    }
    format!("    ip saddr {{ {} }} accept\n", nodes.join(", "))
}

/// The address of a pod that has a network of its own.
fn own_address(pod: &Value) -> Option<&str> {
    let ended = ["Succeeded", "Failed"]
        .iter()
        .any(|phase| pod["status"]["phase"] == *phase);
    if ended || pod["spec"]["hostNetwork"] == true {
        return None;
    }
    pod["status"]["podIP"].as_str()
}

fn concerns(policy: &Value, pod: &Value) -> bool {
    policy["metadata"]["namespace"] == pod["metadata"]["namespace"]
        && fits(&policy["spec"]["podSelector"], pod)
}

/// What a rule allows, as matches of nft: none when it allows nothing that is there.
fn allowed(
    direction: Direction,
    rule: &Value,
    policy: &Value,
    pod: &Value,
    (pods, namespaces): (&[Value], &[Value]),
    peer: &str,
) -> Vec<String> {
    let peers = match direction.peers(rule) {
        None => vec![String::new()],
        Some(listed) => listed
            .iter()
            .filter_map(|one| addresses(one, policy, pods, namespaces, peer))
            .collect(),
    };
    let ports = match rule["ports"].as_array().filter(|ports| !ports.is_empty()) {
        None => vec![String::new()],
        Some(listed) => {
            // A name is one of the destination pod.
            let destinations: Vec<&Value> = match direction {
                Direction::Ingress => vec![pod],
                Direction::Egress => pods.iter().collect(),
            };
            listed
                .iter()
                .flat_map(|port| matches(port, &destinations))
                .collect()
        }
    };
    let pairs = peers
        .iter()
        .flat_map(|peer| ports.iter().map(move |port| format!("{peer} {port}")));
    pairs.map(|pair| pair.trim().to_owned()).collect()
}

/// The addresses of a peer, as a match.
fn addresses(
    peer: &Value,
    policy: &Value,
    pods: &[Value],
    namespaces: &[Value],
    side: &str,
) -> Option<String> {
    if let Some(block) = peer["ipBlock"]["cidr"].as_str() {
        // Pods of the testbed have no addresses of version 6.
        if block.contains(':') {
            return None;
        }
        let except = peer["ipBlock"]["except"].as_array();
        let except: Vec<&str> = except
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        if except.is_empty() {
            return Some(format!("{side} {block}"));
        }
        return Some(format!(
            "{side} {block} {side} != {{ {} }}",
            except.join(", ")
        ));
    }
    let in_namespace = |pod: &Value| match peer.get("namespaceSelector") {
        None => pod["metadata"]["namespace"] == policy["metadata"]["namespace"],
        Some(selector) => namespaces.iter().any(|namespace| {
            namespace["metadata"]["name"] == pod["metadata"]["namespace"]
                && fits(selector, namespace)
        }),
    };
    let found: BTreeSet<&str> = pods
        .iter()
        .filter(|pod| in_namespace(pod) && fits(&peer["podSelector"], pod))
        .filter_map(|pod| pod["status"]["podIP"].as_str())
        .collect();
    let found: Vec<&str> = found.into_iter().collect();
    (!found.is_empty()).then(|| format!("{side} {{ {} }}", found.join(", ")))
}

/// A port of a rule, as matches: a name may be several numbers, or none.
fn matches(port: &Value, destinations: &[&Value]) -> Vec<String> {
    let protocol = port["protocol"].as_str().unwrap_or("TCP").to_lowercase();
    match &port["port"] {
        Value::Null => vec![format!("meta l4proto {protocol}")],
        Value::String(name) => {
            let numbers: BTreeSet<i64> = destinations
                .iter()
                .flat_map(|pod| named(pod, name))
                .collect();
            let each = numbers.into_iter();
            each.map(|number| format!("{protocol} dport {number}"))
                .collect()
        }
        number => match port["endPort"].as_i64() {
            Some(end) => vec![format!("{protocol} dport {number}-{end}")],
            None => vec![format!("{protocol} dport {number}")],
        },
    }
}

/// The container ports of a pod with a name.
fn named<'a>(pod: &'a Value, name: &'a str) -> impl Iterator<Item = i64> + 'a {
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    containers
        .flat_map(|container| container["ports"].as_array().into_iter().flatten())
        .filter(move |port| port["name"] == name)
        .filter_map(|port| port["containerPort"].as_i64())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(namespace: &str, app: &str, address: &str) -> Value {
        json!({
            "metadata": { "namespace": namespace, "labels": { "app": app } },
            "spec": { "containers": [{ "ports": [{ "name": "client", "containerPort": 2379 }] }] },
            "status": { "phase": "Running", "podIP": address },
        })
    }

    fn rendered(spec: &Value) -> String {
        let policies = [json!({ "metadata": { "namespace": "a" }, "spec": spec })];
        let pods = [
            pod("a", "etcd", "10.0.0.1"),
            pod("a", "api", "10.0.0.2"),
            pod("b", "api", "10.0.0.3"),
        ];
        let namespaces = ["a", "b"]
            .map(|name| json!({ "metadata": { "name": name, "labels": { "is": name } } }));
        let nodes = ["10.9.0.1", "10.9.0.2"].map(str::to_owned);
        text(&policies, &pods, &namespaces, &nodes)
    }

    #[test]
    fn traffic_from_a_node_reaches_pods_of_other_nodes() {
        let rules = rendered(&json!({ "podSelector": {}, "policyTypes": ["Ingress"] }));
        let (_, hooks) = rules.split_once("chain forward_checks").unwrap();
        let (forward, input) = hooks.split_once("chain input_checks").unwrap();
        let let_in = forward.find("ip saddr { 10.9.0.1, 10.9.0.2 } accept");
        let isolated = forward.find("ip daddr 10.0.0.1 jump ingress0");
        assert!(let_in.is_some() && let_in < isolated, "{forward}");
        assert!(!input.contains("accept\n    ip saddr {"), "{input}");
    }

    #[test]
    fn isolated_pods_receive_only_allowed_traffic() {
        let rules = rendered(&json!({
            "podSelector": { "matchLabels": { "app": "etcd" } },
            "ingress": [{ "from": [{ "podSelector": { "matchLabels": { "app": "api" } } }], "ports": [{ "port": "client" }] }],
        }));
        for part in [
            "ip daddr 10.0.0.1 jump ingress0\n",
            "chain ingress0 {\n    ip saddr { 10.0.0.2 } tcp dport 2379 return\n    drop\n",
        ] {
            assert!(rules.contains(part), "no {part:?} in {rules}");
        }
        assert!(!rules.contains("egress"), "{rules}");
    }

    #[test]
    fn namespaces_blocks_and_empty_rules_are_understood() {
        for (rule, expected) in [
            (
                json!({ "from": [{ "namespaceSelector": { "matchLabels": { "is": "b" } } }] }),
                "ip saddr { 10.0.0.3 } return",
            ),
            (
                json!({ "from": [{ "ipBlock": { "cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"] } }] }),
                "ip saddr 10.0.0.0/8 ip saddr != { 10.1.0.0/16 } return",
            ),
            (
                json!({ "from": [{ "ipBlock": { "cidr": "::/0" } }] }),
                "{\n    drop\n",
            ),
            (json!({}), "{\n     return\n"),
            (
                json!({ "ports": [{ "protocol": "UDP", "port": 53 }] }),
                "udp dport 53 return",
            ),
        ] {
            let rules = rendered(
                &json!({ "podSelector": { "matchLabels": { "app": "etcd" } }, "ingress": [rule] }),
            );
            assert!(rules.contains(expected), "no {expected:?} in {rules}");
        }
    }

    #[test]
    fn traffic_without_a_rule_is_dropped() {
        let rules = rendered(&json!({ "podSelector": {}, "policyTypes": ["Ingress", "Egress"] }));
        assert!(rules.contains("chain ingress1 {\n    drop\n"), "{rules}");
        assert!(rules.contains("chain egress1 {\n    drop\n"), "{rules}");
        // A pod of another namespace is not concerned.
        assert!(!rules.contains("10.0.0.3"), "{rules}");
        let (_, input) = rules.split_once("hook input").unwrap();
        assert!(input.contains("ip saddr 10.0.0.1 jump egress0"), "{input}");
        assert!(!input.contains("ingress0"), "{input}");
    }
}
