//! The DNS records of a private link: in the private zone of the cluster, and in one of its base domain. Each call may be the
//! last one of this process: the next pass begins with what it finds.

use serde_json::Value;
use support::azure_resources::{Written, name_of};
use support::rest::Calls;

use super::endpoint::Azure;
use super::plan::{self, Cluster, Link, Owner, Record, ZONES};
use super::status::ERROR;
use crate::private_link::problem::{Problem, failed};

/// What has become of names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Zones {
    /// The ID and the name of the cluster's zone.
    pub(super) own: Option<(String, String)>,
    /// The ID of the zone of the base domain.
    pub(super) shared: Option<String>,
    /// The network has another zone of the base domain, whose records are not managed.
    pub(super) is_linked_elsewhere: bool,
}

impl<C: Calls> Azure<'_, C> {
    /// Leads the names to the endpoint.
    pub(super) async fn publish(&self, link: &Link, address: &str) -> Result<Zones, Problem> {
        let mut zones = Zones::default();
        if !link.records().is_empty() {
            let name = self.cluster.zone();
            let id = self.cluster.group.id(ZONES, &name);
            let zone = self.ensure_zone(&id, || self.cluster.own_zone()).await?;
            if self.cluster.owner_of(&zone) == Owner::Another {
                return Err(Problem::input(
                    ERROR,
                    format!(
                        "private DNS zone {name} is another cluster's, by its tags: clusters of one name need resource groups \
                         of their own"
                    ),
                ));
            }
            if !self.ensure_network(&id, &link.network_link()).await? {
                return Err(Problem::input(
                    ERROR,
                    format!(
                        "the network of the cluster is linked to another private DNS zone {name}: clusters of one name need \
                         networks of their own"
                    ),
                ));
            }
            let is_own = self.cluster.owner_of(&zone) == Owner::Cluster;
            for record in link.records() {
                self.ensure_record(&id, record, address, is_own).await?;
            }
            zones.own = Some((id, name));
        }
        if let Some(domain) = &link.base_domain {
            let id = self.cluster.group.id(ZONES, domain);
            self.ensure_zone(&id, Cluster::shared_zone).await?;
            let is_linked = self
                .ensure_network(&id, &link.shared_network_link())
                .await?;
            zones.is_linked_elsewhere = !is_linked;
            for record in link.shared_records(self.cluster) {
                self.ensure_record(&id, &record, address, false).await?;
            }
            zones.shared = Some(id);
        }
        Ok(zones)
    }

    /// Deletes the names, and the zones that are not in use any more.
    pub(super) async fn withdraw(&self, link: &Link) -> Result<(), Problem> {
        if !link.records().is_empty() {
            let id = self.cluster.group.id(ZONES, &self.cluster.zone());
            self.withdraw_own(&id, link).await?;
        }
        if let Some(domain) = &link.base_domain {
            let id = self.cluster.group.id(ZONES, domain);
            self.withdraw_shared(&id, link).await?;
        }
        Ok(())
    }

    async fn withdraw_own(&self, id: &str, link: &Link) -> Result<(), Problem> {
        let found = self.resources.find(id).await.map_err(failed(ERROR))?;
        let Some(zone) = found else {
            return Ok(());
        };
        let owner = self.cluster.owner_of(&zone);
        if owner == Owner::Another {
            return Ok(());
        }
        for record in link.records() {
            self.delete_record(id, record).await?;
        }
        let is_own = |it: &Value| self.cluster.owner_of(it) == Owner::Cluster;
        self.delete_networks(id, is_own).await?;
        if owner == Owner::Cluster {
            self.delete(id).await?;
        }
        Ok(())
    }

    async fn withdraw_shared(&self, id: &str, link: &Link) -> Result<(), Problem> {
        let found = self.resources.find(id).await.map_err(failed(ERROR))?;
        let Some(zone) = found else {
            return Ok(());
        };
        for record in link.shared_records(self.cluster) {
            self.delete_record(id, &record).await?;
        }
        let left = self.resources.list(&format!("{id}/ALL")).await;
        let left = left.map_err(failed(ERROR))?;
        if left.iter().any(plan::is_of_cluster) {
            // Other clusters in the network may need the link to it; the last one deletes it.
            return Ok(());
        }
        self.delete_networks(id, plan::is_made_link).await?;
        let links = self.resources.list(&network_links(id)).await;
        let is_linked = !links.map_err(failed(ERROR))?.is_empty();
        let is_used = is_linked || left.iter().any(plan::is_made);
        if plan::is_shared_zone(&zone) && !is_used {
            self.delete(id).await?;
        }
        Ok(())
    }

    async fn ensure_zone(&self, id: &str, wanted: impl Fn() -> Value) -> Result<Value, Problem> {
        let found = self.resources.find_settled(id).await;
        match found.map_err(failed(ERROR))? {
            Some(found) => Ok(found),
            None => self.write(id, wanted()).await,
        }
    }

    /// Links a zone to the network of the cluster. Returns whether it is: a network can be linked to one zone of a name only.
    async fn ensure_network(&self, zone: &str, name: &str) -> Result<bool, Problem> {
        let links = self.resources.list(&network_links(zone)).await;
        let links = links.map_err(failed(ERROR))?;
        if links.iter().any(|it| self.cluster.is_linked(it)) {
            return Ok(true);
        }
        let is_taken = |name: &String| links.iter().any(|it| it["name"] == name.as_str());
        let mut names = self.cluster.names(name).into_iter();
        let Some(name) = names.find(|it| !is_taken(it)) else {
            let message = format!(
                "links {name} of private DNS zone {} are those of other networks: delete one that is not in use",
                name_of(zone)
            );
            return Err(Problem::input(ERROR, message));
        };
        let id = format!("{}/{name}", network_links(zone));
        let written = self.resources.put(&id, self.cluster.network_link()).await;
        match written {
            Err(error) if error.is_conflict() => Ok(false),
            Ok(Written::Busy) => Err(busy(&id)),
            written => written.map(|_| true).map_err(failed(ERROR)),
        }
    }

    async fn ensure_record(
        &self,
        zone: &str,
        name: &str,
        address: &str,
        is_own_zone: bool,
    ) -> Result<(), Problem> {
        let id = record(zone, name);
        let live = self.resources.find(&id).await.map_err(failed(ERROR))?;
        let change = live.map(|it| self.cluster.change(&it, address, is_own_zone));
        match change {
            Some(Record::Same) => Ok(()),
            Some(Record::Foreign) => {
                let message = format!(
                    "record {name} of private DNS zone {} is not the one of this cluster: delete it, or use another domain",
                    name_of(zone)
                );
                Err(Problem::input(ERROR, message))
            }
            Some(Record::Write) | None => self
                .write(&id, self.cluster.record(address))
                .await
                .map(drop),
        }
    }

    async fn delete_record(&self, zone: &str, name: &str) -> Result<(), Problem> {
        let id = record(zone, name);
        let live = self.resources.find(&id).await.map_err(failed(ERROR))?;
        if live.is_some_and(|it| self.cluster.owns_record(&it)) {
            self.delete(&id).await?;
        }
        Ok(())
    }

    /// Deletes these links of a zone.
    async fn delete_networks(
        &self,
        zone: &str,
        is_meant: impl Fn(&Value) -> bool,
    ) -> Result<(), Problem> {
        let links = self.resources.list(&network_links(zone)).await;
        let links = links.map_err(failed(ERROR))?;
        for link in links.iter().filter(|it| is_meant(it)) {
            let name = link["name"].as_str().unwrap_or_default();
            self.delete(&format!("{}/{name}", network_links(zone)))
                .await?;
        }
        Ok(())
    }

    async fn write(&self, id: &str, wanted: Value) -> Result<Value, Problem> {
        match self
            .resources
            .put(id, wanted)
            .await
            .map_err(failed(ERROR))?
        {
            Written::Done(made) => Ok(made),
            Written::Busy => Err(busy(id)),
        }
    }

    async fn delete(&self, id: &str) -> Result<(), Problem> {
        let is_gone = self.resources.delete(id).await.map_err(failed(ERROR))?;
        if is_gone { Ok(()) } else { Err(busy(id)) }
    }
}

/// The ID of a record.
fn record(zone: &str, name: &str) -> String {
    format!("{zone}/A/{name}")
}

fn network_links(zone: &str) -> String {
    format!("{zone}/virtualNetworkLinks")
}

fn busy(id: &str) -> Problem {
    let message = format!("waiting for {}, which Azure is working on", name_of(id));
    Problem::input(ERROR, message)
}
