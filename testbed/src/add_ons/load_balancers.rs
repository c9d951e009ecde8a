//! Gives Services of type `LoadBalancer` addresses of the nodes' network. kube-proxy does the rest.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::Loop;
use crate::client::{ApiClient, Patch, Resource};
use crate::namespaces::{Entry, Subnets};
use crate::node::NodeTestbed;

const SERVICES: Resource<'_> = Resource::new("v1", "services");
/// How often Services are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Hands addresses out, until it is dropped.
#[derive(Debug)]
pub struct LoadBalancers {
    _run: Loop,
}

/// Who has which address.
#[derive(Debug, Default)]
struct Table {
    /// Numbers of addresses, by the Services' uids.
    given: HashMap<String, u8>,
}

// === impl LoadBalancers ===

impl LoadBalancers {
    /// Begins.
    pub fn start(testbed: &NodeTestbed) -> Self {
        let admin = testbed.admin.clone();
        let entry = testbed.namespaces().bare();
        let subnets = testbed.namespaces().subnets();
        let run = tokio::spawn(async move {
            let mut table = Table::default();
            loop {
                if let Err(error) = look(&admin, &entry, subnets, &mut table).await {
                    eprintln!("addresses for Services: {error:#}");
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        });
        Self { _run: Loop(run) }
    }
}

// === impl Table ===

impl Table {
    /// The number of a Service: the one that it has, or the first that is free.
    fn number(&mut self, uid: &str) -> Result<u8> {
        if let Some(number) = self.given.get(uid) {
            return Ok(*number);
        }
        let free = (0..Subnets::BALANCERS)
            .find(|number| !self.given.values().any(|given| given == number))
            .context("no address is free")?;
        self.given.insert(uid.to_owned(), free);
        Ok(free)
    }

    /// Takes back the numbers of Services that are gone.
    fn keep(&mut self, uids: &[&str]) -> Vec<u8> {
        let gone = self
            .given
            .extract_if(|uid, _| !uids.contains(&uid.as_str()));
        gone.map(|(_, number)| number).collect()
    }
}

async fn look(admin: &ApiClient, entry: &Entry, subnets: Subnets, table: &mut Table) -> Result<()> {
    let services = admin.list(&SERVICES.all()).await?;
    let desired: Vec<&Value> = services
        .iter()
        .filter(|service| is_desired(service))
        .collect();
    let uids: Vec<&str> = desired.iter().map(|service| text(service, "uid")).collect();
    for number in table.keep(&uids) {
        let address = format!("{}/32", subnets.balancer(number));
        drop(entry.run("ip", ["addr", "del", &address, "dev", "nodes"]));
    }
    for service in desired {
        let address = subnets
            .balancer(table.number(text(service, "uid"))?)
            .to_string();
        if service["status"]["loadBalancer"]["ingress"][0]["ip"] == address.as_str() {
            continue;
        }
        let own = format!("{address}/32");
        // It may have been there before.
        drop(entry.run("ip", ["addr", "add", &own, "dev", "nodes"]));
        let path = SERVICES.named(text(service, "namespace"), text(service, "name"));
        let status = json!({ "status": { "loadBalancer": { "ingress": [{ "ip": address }] } } });
        admin
            .patch(&format!("{path}/status"), Patch::Merge, &status)
            .await?;
    }
    Ok(())
}

fn is_desired(service: &Value) -> bool {
    service["spec"]["type"] == "LoadBalancer" && service["metadata"]["deletionTimestamp"].is_null()
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_exclusive_and_reused() {
        let mut table = Table::default();
        assert_eq!(table.number("a").unwrap(), 0);
        assert_eq!(table.number("b").unwrap(), 1);
        assert_eq!(table.number("a").unwrap(), 0);
        assert_eq!(table.keep(&["b"]), [0]);
        assert_eq!(table.number("c").unwrap(), 0);
    }
}
