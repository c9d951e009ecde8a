//! Creates the resource groups, the network and the egress of a cluster, and its private DNS zone.

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use support::aws::encoded;
use support::rest::{Calls, Error};

use super::assign_roles::RolesRequest;
use super::executor::Executor;
use super::found::{Found, NetworkRequest};
use super::identity_files::IdentityFiles;
use super::network::{self, Desired, SUBNET};
use super::operation::{has_failed, is_pending};
use super::resource::{PRIVATE_DNS, RESOURCES};
use super::roles::Groups;
use super::scope::{ID_TAG, NAME_TAG, Owner};

/// What there is: the file of `--infra-json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NetworkOutput {
    pub(crate) base_domain: String,
    #[serde(rename = "publicZoneID")]
    pub(crate) public_zone_id: String,
    #[serde(rename = "privateZoneID")]
    pub(crate) private_zone_id: String,
    pub(crate) region: String,
    pub(crate) resource_group_name: String,
    #[serde(rename = "vnetID")]
    pub(crate) vnet_id: String,
    #[serde(rename = "subnetID")]
    pub(crate) subnet_id: String,
    #[serde(rename = "bootImageID")]
    pub(crate) boot_image_id: String,
    #[serde(rename = "infraID")]
    pub(crate) infra_id: String,
    #[serde(rename = "securityGroupID")]
    pub(crate) security_group_id: String,
    #[serde(rename = "natSubnetID")]
    pub(crate) nat_subnet_id: String,
    #[serde(rename = "controlPlaneMIs", skip_serializing_if = "Option::is_none")]
    pub(crate) control_plane_mis: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data_plane_identities: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) workload_identities: Option<Value>,
    #[serde(rename = "kmsClientID", skip_serializing_if = "Option::is_none")]
    pub(crate) kms_client_id: Option<String>,
}

// === impl NetworkOutput ===

impl NetworkOutput {
    /// With the identities of a cluster.
    pub(super) fn with(mut self, identities: &IdentityFiles) -> Self {
        match identities.clone() {
            IdentityFiles::Workload {
                fields,
                kms_client_id,
            } => {
                self.workload_identities = Some(fields);
                self.kms_client_id = kms_client_id;
            }
            IdentityFiles::Managed {
                control_plane,
                data_plane,
            } => {
                self.control_plane_mis = Some(control_plane);
                self.data_plane_identities = Some(data_plane);
            }
        }
        self
    }
}

impl<C: Calls> Executor<'_, C> {
    /// Creates what is missing, in an order in which an interrupted run can be continued.
    pub(super) async fn create_network(
        &self,
        request: &NetworkRequest,
        found: &Found,
        roles: Option<&RolesRequest>,
    ) -> anyhow::Result<NetworkOutput> {
        let groups = request.groups(self.scope, &found.public_zone);
        self.ensure_main_group(request).await?;
        let security_group = self.security_group(request, &groups).await?;
        let (network, subnet) = self
            .network(request, found, &groups, &security_group)
            .await?;
        if let Some(roles) = roles {
            self.assign_roles(&groups, roles).await?;
        }
        let domain = request.domain.cluster();
        let zone = network::private_zone(self.scope, &groups.main, &domain);
        self.ensure(&zone).await?;
        self.link(&zone, &network).await?;
        let address = network::public_address(self.scope, &groups.main);
        self.ensure(&address).await?;
        let balancer = network::load_balancer(self.scope, &groups.main, &address.id);
        self.ensure(&balancer).await?;
        Ok(NetworkOutput {
            base_domain: request.domain.base.clone(),
            public_zone_id: found.public_zone.text.clone(),
            private_zone_id: zone.id,
            region: self.scope.location.clone(),
            resource_group_name: request.main_group(self.scope),
            vnet_id: network,
            subnet_id: subnet,
            boot_image_id: String::new(),
            infra_id: self.scope.infra_id.clone(),
            security_group_id: security_group,
            nat_subnet_id: String::new(),
            control_plane_mis: None,
            data_plane_identities: None,
            workload_identities: None,
            kms_client_id: None,
        })
    }

    /// Creates the resource group of the cluster, unless one is given.
    pub(super) async fn ensure_main_group(&self, request: &NetworkRequest) -> anyhow::Result<()> {
        if request.group.is_some() {
            return Ok(());
        }
        let name = self.scope.main_name();
        self.ensure(&network::group(self.scope, &name))
            .await
            .map(drop)
    }

    /// A resource group of the network, unless one group is given for everything.
    async fn ensure_group(&self, request: &NetworkRequest, id: &str) -> anyhow::Result<()> {
        if request.group.is_some() {
            return Ok(());
        }
        let name = id.rsplit('/').next().unwrap_or_default();
        self.ensure(&network::group(self.scope, name))
            .await
            .map(drop)
    }

    async fn security_group(
        &self,
        request: &NetworkRequest,
        groups: &Groups,
    ) -> anyhow::Result<String> {
        if let Some(given) = &request.security_group {
            return Ok(given.text.clone());
        }
        self.ensure_group(request, &groups.security_group).await?;
        let desired = network::security_group(self.scope, &groups.security_group);
        self.ensure(&desired).await?;
        Ok(desired.id)
    }

    /// The network and its subnet.
    async fn network(
        &self,
        request: &NetworkRequest,
        found: &Found,
        groups: &Groups,
        security_group: &str,
    ) -> anyhow::Result<(String, String)> {
        if let Some((given, subnet)) = request.network.as_ref().zip(found.subnet.clone()) {
            return Ok((given.text.clone(), subnet));
        }
        self.ensure_group(request, &groups.network).await?;
        let desired = network::network(self.scope, &groups.network, security_group);
        self.ensure(&desired).await?;
        let subnet = format!("{}/subnets/{SUBNET}", desired.id);
        Ok((desired.id, subnet))
    }

    /// Has a network use the private zone. A link of any name does.
    async fn link(&self, zone: &Desired, network: &str) -> anyhow::Result<()> {
        let desired = network::link(self.scope, &zone.id, network);
        let what = || {
            format!(
                "failed to link the network to private DNS zone {}",
                zone.name()
            )
        };
        if self.has_link(&zone.id, network).await.with_context(what)? {
            self.say(&format!("virtual network link {}: exists", desired.name()));
            return Ok(());
        }
        let Err(error) = self.ensure(&desired).await else {
            return Ok(());
        };
        let is_conflict = error
            .downcast_ref::<Error>()
            .is_some_and(Error::is_conflict);
        if is_conflict && self.has_link(&zone.id, network).await.with_context(what)? {
            return Ok(());
        }
        Err(error).with_context(what)
    }

    async fn has_link(&self, zone: &str, network: &str) -> Result<bool, Error> {
        let list = format!("{zone}/virtualNetworkLinks");
        let links = self.list(self.scope.url(&list, PRIVATE_DNS)).await?;
        Ok(links.iter().any(|link| {
            let linked = link["properties"]["virtualNetwork"]["id"].as_str();
            let is_it = linked.is_some_and(|id| id.eq_ignore_ascii_case(network));
            // One that is being created or has failed is continued.
            is_it && !has_failed(link) && !is_pending(link)
        }))
    }

    /// Says what there is of a network, and creates nothing.
    pub(super) async fn report_network(
        &self,
        request: &NetworkRequest,
        found: &Found,
    ) -> anyhow::Result<()> {
        for desired in self.desired_network(request, found) {
            let there = self.find(&desired.id, desired.version).await?;
            let state = match there.map(|it| self.scope.owner(&it["tags"])) {
                None => "would be created",
                Some(Owner::Ours) => "exists",
                Some(Owner::Other(_) | Owner::Unknown) => "exists, and would be refused",
            };
            self.say(&format!("{} {}: {state}", desired.noun, desired.name()));
        }
        Ok(())
    }

    /// All that would be created.
    fn desired_network(&self, request: &NetworkRequest, found: &Found) -> Vec<Desired> {
        let groups = request.groups(self.scope, &found.public_zone);
        let group = |id: &String| {
            let name = id.rsplit('/').next().unwrap_or_default();
            network::group(self.scope, name)
        };
        let mut desired = Vec::new();
        if request.group.is_none() {
            desired.push(group(&groups.main));
        }
        let security_group = network::security_group(self.scope, &groups.security_group);
        let id = security_group.id.clone();
        if request.security_group.is_none() {
            if request.group.is_none() {
                desired.push(group(&groups.security_group));
            }
            desired.push(security_group);
        }
        if request.network.is_none() {
            if request.group.is_none() {
                desired.push(group(&groups.network));
            }
            desired.push(network::network(self.scope, &groups.network, &id));
        }
        let domain = request.domain.cluster();
        desired.push(network::private_zone(self.scope, &groups.main, &domain));
        let address = network::public_address(self.scope, &groups.main);
        let balancer = network::load_balancer(self.scope, &groups.main, &address.id);
        desired.extend([address, balancer]);
        desired
    }

    /// Refuses to create a second infrastructure for a cluster whose creation was interrupted.
    pub(crate) async fn refuse_other(&self) -> anyhow::Result<()> {
        let name = &self.scope.name;
        let filter = encoded(&format!("tagName eq '{NAME_TAG}' and tagValue eq '{name}'"));
        let url = self.scope.list_url("resourcegroups", RESOURCES);
        let groups = self.list(format!("{url}&$filter={filter}")).await;
        let groups = groups.context("failed to list resource groups")?;
        // Services may ignore filters that they do not know.
        let mut ours = groups.iter().filter(|it| it["tags"][NAME_TAG] == **name);
        let Some(group) = ours.next() else {
            return Ok(());
        };
        let other = group["tags"][ID_TAG].as_str().unwrap_or("unknown");
        bail!(
            "resource group {} of infrastructure {other} was created for a cluster {name}: continue with --infra-id {other}, \
             delete it with destroy infra azure, or give another --infra-id to create one more",
            group["name"].as_str().unwrap_or_default()
        );
    }
}
