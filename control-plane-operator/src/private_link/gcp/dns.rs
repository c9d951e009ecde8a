//! The zones and records of an endpoint. Each call may be the last one of this process: the next pass begins with what it
//! finds.

use api::hypershift::v1beta1::gcp_private_service_connect::GcpDnsZone;
use support::rest::Calls;

use super::endpoint::Google;
use super::plan::{self, Owner, Zone};
use super::status::ERROR;
use crate::private_link::problem::{Problem, failed};

/// What has become of names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Zones {
    pub(super) zones: Vec<GcpDnsZone>,
    /// The name servers of the public zone.
    pub(super) name_servers: Vec<String>,
}

impl<C: Calls> Google<'_, C> {
    /// Leads the names to the endpoint.
    pub(super) async fn publish(&self, address: &str) -> Result<Zones, Problem> {
        let mut zones = Zones::default();
        for zone in self.cluster.zones(address) {
            let name = &zone.name;
            let found = self.dns.zone(name).await.map_err(failed(ERROR))?;
            let found = if let Some(found) = found {
                found
            } else {
                let created = self.dns.create_zone(zone.wanted.clone()).await;
                created.map_err(failed(ERROR))?
            };
            let owner = self.cluster.owner_of(&found);
            let is_other = owner == Owner::Another
                || ["dnsName", "visibility"]
                    .iter()
                    .any(|it| found[*it] != zone.wanted[*it]);
            if is_other {
                let message = format!(
                    "zone {name} of Cloud DNS is not the one of this cluster: another cluster has its name or its base domain, \
                     or someone else has created it. Use another name or domain, or delete the zone"
                );
                return Err(Problem::input(ERROR, message));
            }
            self.ensure_records(&zone, owner == Owner::Cluster).await?;
            if zone.is_public() {
                zones.name_servers = plan::name_servers(&found);
            }
            zones.zones.push(GcpDnsZone {
                name: zone.name.clone(),
                records: zone.names(),
            });
        }
        Ok(zones)
    }

    /// Deletes the zones with their records. Those that are not the cluster's are left, without the records that lead to the
    /// endpoint.
    pub(super) async fn withdraw(&self, address: &str) -> Result<(), Problem> {
        for zone in self.cluster.zones(address) {
            let found = self.dns.zone(&zone.name).await.map_err(failed(ERROR))?;
            let Some(found) = found else {
                continue;
            };
            let owner = self.cluster.owner_of(&found);
            if owner == Owner::Another {
                continue;
            }
            let is_own = owner == Owner::Cluster;
            let live = self.dns.records(&zone.name).await.map_err(failed(ERROR))?;
            let removal = zone.removal(&live, is_own);
            if !removal.is_empty() {
                let changed = self.dns.change(&zone.name, &[], &removal).await;
                changed.map_err(failed(ERROR))?;
            }
            if is_own {
                let deleted = self.dns.delete_zone(&zone.name).await;
                deleted.map_err(failed(ERROR))?;
            }
        }
        Ok(())
    }

    async fn ensure_records(&self, zone: &Zone, is_own: bool) -> Result<(), Problem> {
        if zone.records.is_empty() {
            return Ok(());
        }
        let live = self.dns.records(&zone.name).await.map_err(failed(ERROR))?;
        let change = zone.change(&live, is_own).map_err(|name| {
            let message = format!(
                "record {name} of zone {} of Cloud DNS is not the one of this cluster: delete it, or use another domain",
                zone.name
            );
            Problem::input(ERROR, message)
        })?;
        match change {
            None => Ok(()),
            Some(change) => {
                let changed = self
                    .dns
                    .change(&zone.name, &change.additions, &change.deletions);
                changed.await.map_err(failed(ERROR))
            }
        }
    }
}
