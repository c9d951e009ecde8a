//! What exists already: what flags name, and the public DNS zone. Nothing is written, and what is wrong is refused here.

use anyhow::{Context as _, bail};
use serde_json::Value;
use support::rest::Calls;

use super::command::AzureNetworkArgs;
use super::executor::Executor;
use super::network::SUBNET;
use super::resource::{DNS, NETWORK, RESOURCES, ResourceId, check_subnet, is_segment};
use super::roles::Groups;
use super::scope::Scope;
use crate::Usage;
use crate::infra::aws::Domain;

/// What is asked for.
#[derive(Debug, Clone)]
pub(crate) struct NetworkRequest {
    pub(super) domain: Domain,
    /// The resource group that is used for everything.
    pub(super) group: Option<String>,
    pub(super) network: Option<ResourceId>,
    pub(super) subnet: Option<ResourceId>,
    pub(super) security_group: Option<ResourceId>,
    /// The resource group of the public DNS zone.
    dns_group: Option<String>,
}

/// What exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) public_zone: ResourceId,
    /// The subnet of a network that is given.
    pub(super) subnet: Option<String>,
}

// === impl NetworkRequest ===

impl NetworkRequest {
    /// What flags ask for.
    pub(crate) fn new(domain: Domain, args: &AzureNetworkArgs) -> Result<Self, Usage> {
        let id = |flag: &str, id: &Option<String>, kind: &str| {
            let id = id.as_deref();
            id.map(|id| ResourceId::of_flag(flag, id, kind)).transpose()
        };
        let network = id(
            "--vnet-id",
            &args.vnet_id,
            "Microsoft.Network/virtualNetworks",
        )?;
        let security_group = id(
            "--network-security-group-id",
            &args.network_security_group_id,
            "Microsoft.Network/networkSecurityGroups",
        )?;
        let subnet = args.subnet_id.as_deref();
        let subnet = subnet
            .map(|id| check_subnet("--subnet-id", id))
            .transpose()?;
        let group = args.resource_group_name.clone();
        let dns_group = args.dns_zone_rg_name.clone();
        for (flag, group) in [
            ("--resource-group-name", &group),
            ("--dns-zone-rg-name", &dns_group),
        ] {
            check_group(flag, group.as_deref())?;
        }
        if security_group.is_some() && group.is_none() {
            return Err(Usage::new(
                &"--network-security-group-id needs --resource-group-name: the cluster has to be in a group that exists",
            ));
        }
        if let Some(subnet) = &subnet {
            check_network(subnet, network.as_ref())?;
        }
        if group.is_some() && !args.resource_group_tags.is_empty() {
            return Err(Usage::new(
                &"--resource-group-tags is for groups that are created, and --resource-group-name names one that exists: \
                  leave out one of them",
            ));
        }
        Ok(Self {
            domain,
            group,
            network,
            subnet,
            security_group,
            dns_group,
        })
    }

    /// The name of the resource group of the cluster.
    pub(crate) fn main_group(&self, scope: &Scope) -> String {
        let given = self.group.clone();
        given.unwrap_or_else(|| scope.main_name())
    }

    /// The resource groups that roles are for.
    pub(super) fn groups(&self, scope: &Scope, public_zone: &ResourceId) -> Groups {
        let own = |part: &str| {
            let name = self.group.clone();
            scope.group_id(&name.unwrap_or_else(|| scope.named(part)))
        };
        let given = |id: Option<&ResourceId>| id.map(|id| id.group.clone());
        Groups {
            main: scope.group_id(&self.main_group(scope)),
            security_group: given(self.security_group.as_ref()).unwrap_or_else(|| own("nsg")),
            network: given(self.network.as_ref()).unwrap_or_else(|| own("vnet")),
            dns: Some(public_zone.group.clone()),
        }
    }
}

/// The name of a resource group becomes a part of URLs.
pub(super) fn check_group(flag: &str, group: Option<&str>) -> Result<(), Usage> {
    if group.is_none_or(is_segment) {
        return Ok(());
    }
    Err(Usage::new(&format!(
        "{flag} {:?}: use letters, digits, dashes, underscores, dots and parentheses",
        group.unwrap_or_default()
    )))
}

/// A subnet has to be in the network that is given.
fn check_network(subnet: &ResourceId, network: Option<&ResourceId>) -> Result<(), Usage> {
    let of_subnet = subnet.text.rsplit_once('/');
    let of_subnet = of_subnet.and_then(|(subnets, _)| subnets.rsplit_once('/'));
    let of_subnet = of_subnet.map_or("", |(network, _)| network);
    match network {
        Some(network) if network.is(of_subnet) => Ok(()),
        Some(network) => Err(Usage::new(&format!(
            "--subnet-id names a subnet of {of_subnet}, and --vnet-id names {}: use a subnet of this network",
            network.text
        ))),
        None => Err(Usage::new(&format!(
            "--subnet-id needs --vnet-id {of_subnet}: a network that is created has a subnet of its own"
        ))),
    }
}

impl<C: Calls> Executor<'_, C> {
    /// Looks up what the request names.
    pub(super) async fn find_network(&self, request: &NetworkRequest) -> anyhow::Result<Found> {
        if let Some(name) = &request.group {
            let found = self.find(&self.scope.group_id(name), RESOURCES).await;
            found
                .with_context(|| format!("failed to look up resource group {name}"))?
                .with_context(|| {
                    format!(
                        "there is no resource group {name}: create it, or leave out --resource-group-name to have one created"
                    )
                })?;
        }
        let public_zone = self.public_zone(request).await?;
        if let Some(id) = &request.security_group {
            self.given("--network-security-group-id", id).await?;
        }
        let mut subnet = None;
        if let Some(id) = &request.network {
            let network = self.given("--vnet-id", id).await?;
            subnet = Some(subnet_of(&network, request.subnet.as_ref())?);
        }
        Ok(Found {
            public_zone,
            subnet,
        })
    }

    /// A resource that a flag names.
    async fn given(&self, flag: &str, id: &ResourceId) -> anyhow::Result<Value> {
        let found = self.find(&id.text, NETWORK).await;
        let found = found.with_context(|| format!("failed to look up {}", id.text))?;
        let found = found.with_context(|| format!("{flag}: {} does not exist", id.text))?;
        let location = found["location"].as_str().unwrap_or_default();
        if !location.eq_ignore_ascii_case(&self.scope.location) {
            bail!(
                "{flag}: {} is in {location}, and the cluster would be in {}: give --location {location}",
                id.text,
                self.scope.location
            );
        }
        Ok(found)
    }

    /// The public DNS zone of the base domain: only the owner of the domain can delegate it.
    async fn public_zone(&self, request: &NetworkRequest) -> anyhow::Result<ResourceId> {
        let base = &request.domain.base;
        let url = self
            .scope
            .list_url("providers/Microsoft.Network/dnszones", DNS);
        let zones = self.list(url).await.context("failed to list DNS zones")?;
        let is_it = |zone: &&Value| {
            let name = zone["name"].as_str().unwrap_or_default();
            name.eq_ignore_ascii_case(base) && zone["properties"]["zoneType"] != "Private"
        };
        let ids = zones.iter().filter(is_it);
        let ids = ids.filter_map(|zone| ResourceId::parse(zone["id"].as_str()?));
        let ids = ids.filter(|id| {
            let group = request.dns_group.as_deref();
            group.is_none_or(|group| id.group_name().eq_ignore_ascii_case(group))
        });
        let mut ids: Vec<_> = ids.collect();
        match (ids.pop(), ids.first()) {
            (Some(only), None) => Ok(only),
            (Some(_), Some(_)) => bail!(
                "there are several public DNS zones {base} in the subscription: give --dns-zone-rg-name"
            ),
            (None, _) => bail!(
                "there is no public DNS zone {base} in {}: create it, and delegate the domain to it",
                request.dns_group.as_deref().map_or_else(
                    || "the subscription".to_owned(),
                    |group| format!("resource group {group}")
                )
            ),
        }
    }
}

/// The subnet of nodes in a network that is given.
fn subnet_of(network: &Value, given: Option<&ResourceId>) -> anyhow::Result<String> {
    let subnets = network["properties"]["subnets"].as_array();
    let ids = subnets.into_iter().flatten();
    let ids: Vec<&str> = ids.filter_map(|subnet| subnet["id"].as_str()).collect();
    if let Some(given) = given {
        if ids.iter().any(|id| given.is(id)) {
            return Ok(given.text.clone());
        }
        bail!("--subnet-id: {} does not exist", given.text);
    }
    let default = format!("/{SUBNET}");
    let usual = ids.iter().find(|id| id.ends_with(&default));
    match (usual, ids.as_slice()) {
        (Some(id), _) | (None, [id]) => Ok((*id).to_owned()),
        _ => bail!("--vnet-id names a network with several subnets, or none: give --subnet-id"),
    }
}
