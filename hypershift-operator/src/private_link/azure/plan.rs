//! What an AzurePrivateLinkService means in Azure: whose frontends, private link services and subnets are. Pure.
//!
//! The author of a HostedCluster chooses the image of the program that writes AzurePrivateLinkServices, and some of the names
//! that things in Azure have. So names prove nothing. A private link service is the cluster's in two cases: it has the tag
//! with the UID of the AzurePrivateLinkService, which only this operator writes; or it is for the frontend of the Service in
//! the control plane's namespace, by the address and the UID of that Service.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::Ipv4Net;
use serde_json::{Value, json};
use support::azure_resources::{self as resources, State, is_same};

use crate::private_link::inputs::Balancer;

/// The Services that are reached by private links.
pub(super) const ROUTER: &str = "private-router";
pub(super) const SERVICES: [&str; 2] = [ROUTER, "oauth-openshift"];
/// The types of what is looked for.
pub(super) const BALANCERS: &str = "Microsoft.Network/loadBalancers";
pub(super) const LINKS: &str = "Microsoft.Network/privateLinkServices";
/// The tag with the UID of the AzurePrivateLinkService that a private link service was created for.
const OWNER: &str = "hypershift.openshift.io_azure-private-link-service-uid";
const TYPE: (&str, &str) = (
    "hypershift.openshift.io_resource-type",
    "private-link-service",
);
/// What the names of the subnets end with that this operator creates.
const SUBNET: &str = "-pls-nat";
/// The size of these subnets.
const PREFIX: u8 = 24;
/// States of connections that hold up a deletion.
const OPEN: [&str; 2] = ["approved", "pending"];

/// An AzurePrivateLinkService, as far as it can be relied on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) uid: String,
    /// The load balancer of the Service, once it has one.
    pub(super) balancer: Option<Balancer>,
    /// The ID of the subnet that was created for the cluster, as the annotation has it.
    pub(super) subnet: Option<String>,
}

/// What is to be in Azure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Desired {
    pub(super) target: Target,
    /// The name of the private link service.
    pub(super) name: String,
    /// The name of the HostedCluster.
    pub(super) cluster: String,
    pub(super) infra_id: String,
    /// The subscriptions that may connect, in lower case.
    pub(super) subscriptions: BTreeSet<String>,
    /// The subnet that the HostedCluster names.
    pub(super) given_subnet: Option<String>,
}

/// A frontend of a load balancer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Frontend {
    pub(super) id: String,
    /// The name of the load balancer.
    pub(super) balancer: String,
    pub(super) location: String,
    /// The ID of its subnet.
    pub(super) subnet: String,
}

/// A private link service.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Link {
    pub(super) name: String,
    pub(super) alias: String,
    pub(super) tags: BTreeMap<String, String>,
    /// IDs of its frontends.
    pub(super) frontends: Vec<String>,
    /// The ID of its subnet.
    pub(super) subnet: Option<String>,
    /// Who sees it, and who may connect, in lower case.
    pub(super) visible: BTreeSet<String>,
    pub(super) approved: BTreeSet<String>,
    pub(super) state: State,
    pub(super) connections: Vec<Connection>,
}

/// A connection of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Connection {
    pub(super) name: String,
    /// In lower case.
    pub(super) state: String,
}

/// The name of the private link service of a Service.
pub(super) fn link_name(service: &str, cluster_id: &str) -> String {
    if service == ROUTER {
        return format!("pls-{cluster_id}");
    }
    format!("pls-{service}-{cluster_id}")
}

/// The name of the subnet of a cluster.
pub(super) fn subnet_name(infra_id: &str) -> String {
    format!("{infra_id}{SUBNET}")
}

/// Whether a subnet has a name that this operator gives.
pub(super) fn is_created(subnet: &str) -> bool {
    subnet.len() > SUBNET.len() && subnet.ends_with(SUBNET)
}

/// The frontend that has the address of the Service, and was not made for another one: Services can share an address, and
/// networks can have the same one.
pub(super) fn frontend(balancers: &[Value], own: &Balancer) -> Result<Frontend, String> {
    let address = &own.address;
    let mut candidates = Vec::new();
    let mut is_shared = false;
    for balancer in balancers {
        for found in items(&balancer["properties"]["frontendIPConfigurations"]) {
            if found["properties"]["privateIPAddress"] != address.as_str() {
                continue;
            }
            let name = text(&found["name"]);
            if own.is_of_another(name) {
                is_shared = true;
                continue;
            }
            candidates.push((own.is_named(name), frontend_of(balancer, found)));
        }
    }
    let exact = candidates.iter().position(|(is_exact, _)| *is_exact);
    match (exact, candidates.len()) {
        (Some(at), _) => Ok(candidates.swap_remove(at).1),
        (None, 1) => Ok(candidates.swap_remove(0).1),
        (None, 0) if is_shared => Err(format!(
            "address {address} is that of a load balancer that was made for another Service: waiting for the Service to have \
             an address of its own"
        )),
        (None, 0) => Err(format!(
            "waiting for an internal load balancer with address {address}, which the resource group of the management cluster \
             does not have"
        )),
        (None, count) => Err(format!(
            "{count} load balancers in the resource group of the management cluster have address {address}, and none has the \
             name of the Service: use networks with different addresses"
        )),
    }
}

fn frontend_of(balancer: &Value, found: &Value) -> Frontend {
    Frontend {
        id: text(&found["id"]).to_owned(),
        balancer: text(&balancer["name"]).to_owned(),
        location: text(&balancer["location"]).to_owned(),
        subnet: text(&found["properties"]["subnet"]["id"]).to_owned(),
    }
}

/// Whether a private link service is the one of an AzurePrivateLinkService, for whose frontend there may be a proof.
pub(super) fn is_own(link: &Link, target: &Target, frontend: Option<&str>) -> bool {
    let is_tagged = link.tags.get(OWNER) == Some(&target.uid) && !target.uid.is_empty();
    is_tagged || frontend.is_some_and(|id| leads_to(link, id))
}

/// Whether a private link service leads to this frontend, and to no other one.
pub(super) fn leads_to(link: &Link, frontend: &str) -> bool {
    matches!(link.frontends.as_slice(), [one] if is_same(one, frontend))
}

/// Whether it is to be written again.
pub(super) fn is_outdated(link: &Link, desired: &Desired) -> bool {
    let subscriptions = &desired.subscriptions;
    link.state == State::Failed
        || link.visible != *subscriptions
        || link.approved != *subscriptions
        || link.tags.get(OWNER) != Some(&desired.target.uid)
}

/// The private link service as it is to be. Tags of others stay.
pub(super) fn resource(
    desired: &Desired,
    frontend: &Frontend,
    subnet: &str,
    before: Option<&Link>,
) -> Value {
    let mut tags = before.map(|it| it.tags.clone()).unwrap_or_default();
    let cluster = format!("kubernetes.io_cluster_{}", desired.cluster);
    tags.insert(cluster, "owned".to_owned());
    tags.insert(TYPE.0.to_owned(), TYPE.1.to_owned());
    tags.insert(OWNER.to_owned(), desired.target.uid.clone());
    let subscriptions = json!({ "subscriptions": desired.subscriptions });
    json!({
        "location": frontend.location,
        "tags": tags,
        "properties": {
            "visibility": subscriptions,
            "autoApproval": subscriptions,
            "loadBalancerFrontendIpConfigurations": [{ "id": frontend.id }],
            "ipConfigurations": [{
                "name": "pls-nat-ip",
                "properties": {
                    "subnet": { "id": subnet },
                    "privateIPAllocationMethod": "Dynamic",
                    "privateIPAddressVersion": "IPv4",
                    "primary": true,
                },
            }],
        },
    })
}

/// The connections that hold up a deletion.
pub(super) fn open(link: &Link) -> Vec<&str> {
    let open = link.connections.iter();
    let open = open.filter(|it| OPEN.contains(&it.state.as_str()));
    open.map(|it| it.name.as_str()).collect()
}

/// The rejection of a connection.
pub(super) fn rejection() -> Value {
    json!({ "properties": { "privateLinkServiceConnectionState": {
        "status": "Rejected",
        "description": "The hosted cluster is deleted",
    } } })
}

/// The subnet that the HostedCluster names, if it is one that addresses can be taken from: in the network of the load
/// balancer, and not one that was created for another cluster.
pub(super) fn given_subnet(
    id: &str,
    infra_id: &str,
    frontend: &Frontend,
    network: &Value,
) -> Result<(), String> {
    const FIELD: &str = "spec.platform.azure.private.privateLink.natSubnetID";
    let of_balancer = resources::parent(&frontend.subnet);
    let own = resources::parent(id);
    let name = resources::name_of(id);
    if !own.zip(of_balancer).is_some_and(|(a, b)| is_same(a, b)) {
        return Err(format!(
            "{FIELD} is not in the network of the internal load balancer: set it to a subnet of the network of the management \
             cluster"
        ));
    }
    if name.ends_with(SUBNET) && name != subnet_name(infra_id) {
        return Err(format!(
            "{FIELD} is a subnet that was created for another hosted cluster: set it to one of your own"
        ));
    }
    let Some(found) = subnet(network, name) else {
        return Err(format!("{FIELD} does not exist: create the subnet"));
    };
    let policies = &found["properties"]["privateLinkServiceNetworkPolicies"];
    if policies != "Disabled" {
        return Err(format!(
            "{FIELD} has privateLinkServiceNetworkPolicies, which no private link service can be in: disable them"
        ));
    }
    Ok(())
}

/// The subnet of this name in a network.
pub(super) fn subnet<'a>(network: &'a Value, name: &str) -> Option<&'a Value> {
    let mut all = items(&network["properties"]["subnets"]).iter();
    all.find(|it| text(&it["name"]).eq_ignore_ascii_case(name))
}

/// The first range of a network in which a subnet can be created. The first one of each part is left out: it is where
/// administrators begin.
pub(super) fn free_range(network: &Value) -> Option<Ipv4Net> {
    let properties = &network["properties"];
    let taken: Vec<Ipv4Net> = items(&properties["subnets"])
        .iter()
        .flat_map(|it| {
            let properties = &it["properties"];
            let many = items(&properties["addressPrefixes"]).iter();
            many.chain([&properties["addressPrefix"]])
        })
        .filter_map(range)
        .collect();
    let space = items(&properties["addressSpace"]["addressPrefixes"]).iter();
    let mut candidates = space.filter_map(range).flat_map(|part| {
        let skipped = usize::from(part.prefix_len() < PREFIX);
        let all = part.subnets(PREFIX).ok();
        all.into_iter().flatten().skip(skipped)
    });
    candidates.find(|it| {
        let overlaps = |other: &Ipv4Net| it.contains(other) || other.contains(it);
        !taken.iter().any(overlaps)
    })
}

fn range(text: &Value) -> Option<Ipv4Net> {
    text.as_str()?.parse().ok()
}

/// A subnet for a private link service.
pub(super) fn new_subnet(range: Ipv4Net) -> Value {
    json!({ "properties": {
        "addressPrefix": range.to_string(),
        "privateLinkServiceNetworkPolicies": "Disabled",
    } })
}

/// Whether a subnet may be deleted that this operator has created: nothing is in it, and no one has configured it.
pub(super) fn is_disposable(subnet: &Value, others: &[Link]) -> bool {
    let id = text(&subnet["id"]);
    let properties = &subnet["properties"];
    let range = range(&properties["addressPrefix"]);
    let is_used = others
        .iter()
        .filter_map(|it| it.subnet.as_deref())
        .any(|it| is_same(it, id));
    let foreign = ["networkSecurityGroup", "routeTable", "natGateway"];
    let lists = [
        "ipConfigurations",
        "privateEndpoints",
        "delegations",
        "serviceEndpoints",
    ];
    text(&subnet["name"]).ends_with(SUBNET)
        && range.is_some_and(|it| it.prefix_len() == PREFIX)
        && properties["privateLinkServiceNetworkPolicies"] == "Disabled"
        && !is_used
        && foreign.iter().all(|field| properties[*field].is_null())
        && lists
            .iter()
            .all(|field| items(&properties[*field]).is_empty())
}

// === impl Link ===

impl Link {
    pub(super) fn of(found: &Value) -> Self {
        let properties = &found["properties"];
        let frontends = items(&properties["loadBalancerFrontendIpConfigurations"]).iter();
        let subnet = &properties["ipConfigurations"][0]["properties"]["subnet"]["id"];
        let connections = items(&properties["privateEndpointConnections"]).iter();
        let connections = connections.map(|it| Connection {
            name: text(&it["name"]).to_owned(),
            state: text(&it["properties"]["privateLinkServiceConnectionState"]["status"])
                .to_ascii_lowercase(),
        });
        Self {
            name: text(&found["name"]).to_owned(),
            alias: text(&properties["alias"]).to_owned(),
            tags: serde_json::from_value(found["tags"].clone()).unwrap_or_default(),
            frontends: frontends.map(|it| text(&it["id"]).to_owned()).collect(),
            subnet: subnet.as_str().map(str::to_owned),
            visible: subscriptions(&properties["visibility"]),
            approved: subscriptions(&properties["autoApproval"]),
            state: resources::state(found),
            connections: connections.collect(),
        }
    }
}

fn subscriptions(found: &Value) -> BTreeSet<String> {
    let all = items(&found["subscriptions"]).iter();
    all.map(|it| text(it).to_ascii_lowercase()).collect()
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
