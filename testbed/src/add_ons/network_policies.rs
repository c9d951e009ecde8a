//! Enforces NetworkPolicies between pods, with nftables on each node.
//!
//! What it does not do: policies say nothing here about pods on the nodes' network, about traffic that a node itself
//! begins, and about machines of the fake cloud.

mod rules;
mod selector;

use std::time::Duration;

use anyhow::Result;

use super::Loop;
use crate::certs::write;
use crate::client::{ApiClient, Resource};
use crate::namespaces::Entry;
use crate::node::NodeTestbed;

const POLICIES: Resource<'_> = Resource::new("networking.k8s.io/v1", "networkpolicies");
const PODS: Resource<'_> = Resource::new("v1", "pods");
const NAMESPACES: Resource<'_> = Resource::new("v1", "namespaces");
/// How often they are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Enforces policies, until it is dropped. What it enforced last then stays.
#[derive(Debug)]
pub struct NetworkPolicies {
    _run: Loop,
}

// === impl NetworkPolicies ===

impl NetworkPolicies {
    /// Begins.
    pub fn start(testbed: &NodeTestbed) -> Self {
        let admin = testbed.admin.clone();
        let entry = testbed.namespaces().bare();
        let nodes: Vec<String> = testbed.nodes.iter().map(|node| node.name.clone()).collect();
        let subnets = testbed.namespaces().subnets();
        let addresses: Vec<String> = (1..)
            .take(nodes.len())
            .map(|number| subnets.node(number).to_string())
            .collect();
        let file = testbed.work_dir().join("network-policies.nft");
        let run = tokio::spawn(async move {
            let mut known = String::new();
            loop {
                match rules_of(&admin, &addresses).await {
                    Ok(rules) if rules == known => {}
                    Ok(rules) => match enforce(&entry, &nodes, &file, &rules) {
                        Ok(()) => known = rules,
                        Err(error) => eprintln!("network policies: {error:#}"),
                    },
                    Err(error) => eprintln!("network policies: {error:#}"),
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        });
        Self { _run: Loop(run) }
    }
}

async fn rules_of(admin: &ApiClient, nodes: &[String]) -> Result<String> {
    let policies = admin.list(&POLICIES.all()).await?;
    let pods = admin.list(&PODS.all()).await?;
    let namespaces = admin.list(&NAMESPACES.all()).await?;
    Ok(rules::text(&policies, &pods, &namespaces, nodes))
}

/// Gives the rules to every node, each at once as a whole.
fn enforce(entry: &Entry, nodes: &[String], file: &std::path::Path, rules: &str) -> Result<()> {
    write(file, rules)?;
    let file = file.to_string_lossy();
    for (number, node) in nodes.iter().enumerate() {
        if number == 0 {
            // The first node has the network of the testbed itself.
            entry.run("nft", ["-f", &file])?;
        } else {
            let network = format!("--net=/run/netns/{node}");
            entry.run("nsenter", [&network, "--", "nft", "-f", &file])?;
        }
    }
    Ok(())
}
