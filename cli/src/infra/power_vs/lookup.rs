//! What there is already, and whose it is.

use anyhow::{Context as _, bail};
use serde_json::Value;
use support::rest::{Calls, Error};

use super::api::{Api, Workspace};
use super::executor::{Executor, id, is_deleted, required, text};
use super::policies::Credentials;
use super::scope::Owner;

/// The zone of the base domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Zone {
    pub(super) id: String,
    /// The CRN of the instance of Internet Services that has it.
    pub(super) crn: String,
    /// The identifier of that instance.
    pub(super) instance: String,
}

/// The state of instances that can be used.
pub(super) const ACTIVE: &str = "active";
/// What marks a service ID, which has no tags.
const DESCRIPTION: &str = "Component of a hosted cluster, ";

impl<C: Calls> Executor<'_, C> {
    /// The account of the API key.
    pub(super) async fn account(&self) -> anyhow::Result<String> {
        let what = "account of the API key";
        let details = self.send(&self.api.key_details(self.key.expose())).await;
        let details = details.with_context(|| format!("failed to get the {what}"))?;
        required(what, &details, "account_id")
    }

    /// The identifier of the resource group.
    pub(super) async fn group(&self, account: &str) -> anyhow::Result<String> {
        let name = &self.scope.place.resource_group;
        let what = format!("resource group {name}");
        let groups = self
            .list(&self.api.groups(account, name), "resources")
            .await;
        let groups = groups.with_context(|| format!("failed to look for {what}"))?;
        match groups.iter().find(|it| it["name"] == *name) {
            Some(group) => id(&what, group),
            None => {
                bail!("there is no {what} in the account: create it, or check --resource-group")
            }
        }
    }

    /// The zone of the base domain, if there is one.
    pub(super) async fn find_zone(&self) -> anyhow::Result<Option<Zone>> {
        let context = || format!("failed to look for zone {}", self.scope.domain.base);
        let instances = self.list(&self.api.internet_services(), "resources").await;
        let mut refused = None;
        for instance in instances.with_context(context)? {
            let (crn, instance) = (text(&instance["crn"]), text(&instance["guid"]));
            match self.zone_in(crn).await {
                Ok(Some(id)) => {
                    return Ok(Some(Zone {
                        id,
                        crn: crn.to_owned(),
                        instance: instance.to_owned(),
                    }));
                }
                Ok(None) => {}
                // The zones of an instance may not be visible although it is.
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        match refused {
            Some(error) => Err(error).with_context(context),
            None => Ok(None),
        }
    }

    async fn zone_in(&self, crn: &str) -> Result<Option<String>, Error> {
        let mut seen = 0;
        for page in 1.. {
            let response = self.send(&self.api.zones(crn, page)).await?;
            let total = response["result_info"]["total_count"].as_u64();
            let zones = response["result"].as_array();
            let zones = zones.map(Vec::as_slice).unwrap_or_default();
            let is_it =
                |it: &&Value| text(&it["name"]).eq_ignore_ascii_case(&self.scope.domain.base);
            if let Some(zone) = zones.iter().find(is_it) {
                return Ok(Some(text(&zone["id"]).to_owned()));
            }
            seen += u64::try_from(zones.len()).unwrap_or_default();
            if zones.is_empty() || seen >= total.unwrap_or_default() {
                break;
            }
        }
        Ok(None)
    }

    /// The records of the ingress.
    pub(super) async fn records(&self, zone: &Zone) -> anyhow::Result<Vec<Value>> {
        let name = self.scope.record();
        let call = self.api.records(&zone.crn, &zone.id, &name);
        let records = self.list(&call, "result").await;
        let mut records =
            records.with_context(|| format!("failed to look for DNS record {name}"))?;
        records.retain(|it| text(&it["name"]).eq_ignore_ascii_case(&name));
        Ok(records)
    }

    /// Whether a resource has the tag of the cluster. One with the tag of another cluster is an error.
    pub(super) async fn is_tagged(&self, what: &str, crn: &str) -> anyhow::Result<bool> {
        let tags = self.list(&self.api.tags(crn), "items").await;
        let tags = tags.with_context(|| format!("failed to read the tags of {what}"))?;
        let tags: Vec<_> = tags.iter().map(|it| text(&it["name"]).to_owned()).collect();
        match self.scope.owner(&tags) {
            Owner::This => Ok(true),
            Owner::Unknown => Ok(false),
            Owner::Other(tag) => bail!(
                "{what} belongs to another cluster (tag {tag}): nothing of it was changed. Use another --infra-id, or remove \
                 the tag if that cluster is gone"
            ),
        }
    }

    /// The only resource of a name, if there is one, and if it does not belong to another cluster.
    async fn own(&self, what: &str, found: Vec<Value>) -> anyhow::Result<Option<Value>> {
        // Of several, always the same one.
        let Some(found) = found
            .into_iter()
            .min_by_key(|it| text(&it["id"]).to_owned())
        else {
            return Ok(None);
        };
        self.is_tagged(what, text(&found["crn"])).await?;
        Ok(Some(found))
    }

    /// The VPCs of a name.
    pub(super) async fn find_vpcs(&self, group: &str, name: &str) -> Result<Vec<Value>, Error> {
        let mut vpcs = self.list(&self.api.vpcs(group), "vpcs").await?;
        vpcs.retain(|it| it["name"] == name);
        Ok(vpcs)
    }

    /// The VPC of the infrastructure.
    pub(super) async fn own_vpc(&self, group: &str) -> anyhow::Result<Option<Value>> {
        let name = self.scope.vpc();
        let what = format!("VPC {name}");
        let found = self.find_vpcs(group, &name).await;
        let found = found.with_context(|| format!("failed to look for {what}"))?;
        self.own(&what, found).await
    }

    /// The workspace of the infrastructure.
    pub(super) async fn own_workspace(&self, group: &str) -> anyhow::Result<Option<Value>> {
        let name = self.scope.workspace();
        let what = format!("workspace {name}");
        let found = self
            .list(&self.api.workspaces(group, &name), "resources")
            .await;
        let mut found = found.with_context(|| format!("failed to look for {what}"))?;
        found.retain(|it| it["name"] == name && Api::is_workspace(it) && !is_deleted(it));
        self.own(&what, found).await
    }

    /// The transit gateways of the account.
    pub(super) async fn find_gateways(&self) -> anyhow::Result<Vec<Value>> {
        let gateways = self.list(&self.api.gateways(), "transit_gateways").await;
        gateways.context("failed to list transit gateways")
    }

    /// The transit gateway of the infrastructure.
    pub(super) async fn own_gateway(&self) -> anyhow::Result<Option<Value>> {
        let name = self.scope.gateway();
        let mut found = self.find_gateways().await?;
        found.retain(|it| it["name"] == name);
        self.own(&format!("transit gateway {name}"), found).await
    }

    pub(super) async fn find_connections(&self, gateway: &str) -> anyhow::Result<Vec<Value>> {
        let call = self.api.connections(gateway);
        let connections = self.list(&call, "connections").await;
        connections.with_context(|| format!("failed to list connections of gateway {gateway}"))
    }

    pub(super) async fn find_dhcp_servers(
        &self,
        workspace: &Workspace,
    ) -> anyhow::Result<Vec<Value>> {
        // A workspace that is not active yet responds as if it did not exist.
        let servers = self.find(&self.api.dhcp_servers(workspace)).await;
        let servers = servers.with_context(|| {
            let id = &workspace.id;
            format!("failed to list DHCP servers of workspace {id}")
        })?;
        let servers = servers.as_ref().and_then(Value::as_array);
        Ok(servers.cloned().unwrap_or_default())
    }

    /// What the service IDs of the infrastructure are described with: their names alone could be a coincidence.
    pub(super) fn description(&self) -> String {
        format!("{DESCRIPTION}{}", self.scope.cluster_tag())
    }

    /// The service ID of a component.
    pub(super) async fn own_service_id(
        &self,
        account: &str,
        credentials: Credentials,
    ) -> anyhow::Result<Option<Value>> {
        let name = self.scope.service_id(credentials.suffix());
        let found = self
            .list(&self.api.service_ids(account, &name), "serviceids")
            .await;
        let found = found.with_context(|| format!("failed to look for service ID {name}"))?;
        let Some(found) = found.into_iter().find(|it| it["name"] == name) else {
            return Ok(None);
        };
        if text(&found["description"]) != self.description() {
            bail!(
                "service ID {name} is not described as one of the cluster's: nothing of it was changed. Use another \
                 --infra-id, or delete it"
            );
        }
        Ok(Some(found))
    }

    /// The API keys of a service ID, by its IAM ID.
    pub(super) async fn find_api_keys(
        &self,
        account: &str,
        iam_id: &str,
    ) -> anyhow::Result<Vec<Value>> {
        let call = self.api.api_keys(account, iam_id);
        let keys = self.list(&call, "apikeys").await;
        let mut keys = keys.with_context(|| format!("failed to list API keys of {iam_id}"))?;
        keys.retain(|it| it["iam_id"] == iam_id);
        Ok(keys)
    }
}
