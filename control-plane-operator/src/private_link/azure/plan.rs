//! What a private link means in the subscription of the cluster: names, tags, records, and whose things are. Pure.
//!
//! Clusters of other tenants may be in the same resource group, and have the same name. What is found by its name is changed
//! only if its tags, or the metadata of a record, do not say that it is another cluster's.

use api::hypershift::v1beta1::AzurePrivateLinkService;
use api::hypershift::v1beta1::HostedControlPlane;
use kube::ResourceExt as _;
use serde_json::{Value, json};
use support::azure_resources::{Group, State, is_id, is_name, is_same, state, tag};

use super::status::ERROR;
use crate::private_link::problem::Problem;

/// The Services that are reached by private links.
pub(super) const ROUTER: &str = "private-router";
pub(super) const OAUTH: &str = "oauth-openshift";
/// The types of what is made.
pub(super) const ENDPOINTS: &str = "Microsoft.Network/privateEndpoints";
pub(super) const ZONES: &str = "Microsoft.Network/privateDnsZones";
/// How long resolvers keep a record, in seconds.
const TTL: u32 = 300;
/// What the owner of the private link service reads.
const MESSAGE: &str = "HyperShift CPO auto-connect";
/// The tag with the ID of the cluster, and the metadata of a record with it. What other operators have created does not have
/// it.
const CLUSTER_ID: &str = "hypershift.openshift.io_cluster-id";
const RECORD_ID: &str = "hypershift_cluster_id";
/// The tag with what something is.
const TYPE: &str = "hypershift.openshift.io_resource-type";
/// A zone that several clusters may have records in. The last one deletes it.
const SHARED_ZONE: &str = "base-domain-zone";
const NETWORK_LINK: &str = "private-dns-zone-link";

/// The cluster, and where its things are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cluster {
    pub(super) name: String,
    pub(super) infra_id: String,
    pub(super) id: Option<String>,
    pub(super) group: Group,
    pub(super) location: String,
    /// The subnet of the endpoint.
    pub(super) subnet: String,
    /// The network of the cluster.
    pub(super) network: String,
}

/// A link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) name: String,
    /// The name of the private link service; empty if there is none yet.
    pub(super) alias: String,
    pub(super) base_domain: Option<String>,
    /// Whether the OAuth server has a link of its own.
    pub(super) has_oauth: bool,
}

/// Whose something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    Cluster,
    /// It is not said: it may be used, and it is not deleted.
    Unclaimed,
    Another,
}

/// What becomes of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Endpoint {
    /// It is connected.
    Connected,
    /// Someone has to approve it, or Azure is working on it.
    Waiting,
    /// It never connects any more.
    Useless,
}

/// What becomes of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Record {
    /// It is as it is to be.
    Same,
    Write,
    /// It is another cluster's, or someone else's.
    Foreign,
}

// === impl Cluster ===

impl Cluster {
    /// The cluster of a control plane, and where the link says that its things are.
    pub(super) fn of(
        hcp: &HostedControlPlane,
        live: &AzurePrivateLinkService,
        endpoint: &'static str,
    ) -> Result<Self, Problem> {
        let spec = &live.spec;
        let names = [
            ("infraID", &hcp.spec.infra_id),
            ("resourceGroupName", &spec.resource_group_name),
            ("subscriptionID", &spec.subscription_id),
        ];
        let ids = [
            ("guestSubnetID", &spec.guest_subnet_id),
            ("guestVNetID", &spec.guest_vnet_id),
        ];
        let wrong = names.iter().find(|(_, value)| !is_name(value));
        let wrong = wrong.or_else(|| ids.iter().find(|(_, value)| !is_id(value)));
        if let Some((field, value)) = wrong {
            let message = format!("{field} {value:?} cannot be a part of the ID of a resource");
            return Err(Problem::input(ERROR, message));
        }
        Ok(Self {
            name: hcp.name_any(),
            infra_id: hcp.spec.infra_id.clone(),
            id: hcp.spec.cluster_id.clone(),
            group: Group {
                endpoint,
                subscription: spec.subscription_id.clone(),
                name: spec.resource_group_name.clone(),
            },
            location: spec.location.clone(),
            subnet: spec.guest_subnet_id.clone(),
            network: spec.guest_vnet_id.clone(),
        })
    }

    fn owned_tag(&self) -> String {
        format!("kubernetes.io_cluster_{}", self.name)
    }

    fn key(&self) -> &str {
        self.id.as_deref().unwrap_or(&self.infra_id)
    }

    /// The tags of what is created.
    fn tags(&self, type_: &str) -> Value {
        json!({ self.owned_tag(): "owned", CLUSTER_ID: self.key(), TYPE: type_ })
    }

    /// Whose a resource is.
    pub(super) fn owner_of(&self, resource: &Value) -> Owner {
        let is_named = tag(resource, &self.owned_tag()) == Some("owned");
        match tag(resource, CLUSTER_ID) {
            Some(id) if id == self.key() => Owner::Cluster,
            Some(_) => Owner::Another,
            // One that another operator has created.
            None if is_named => Owner::Cluster,
            None => Owner::Unclaimed,
        }
    }

    /// The name of its private zone.
    pub(super) fn zone(&self) -> String {
        format!("{}.hypershift.local", self.name)
    }

    /// Names that something of this cluster may have: the second one, if another cluster has the first one.
    pub(super) fn names(&self, name: &str) -> [String; 2] {
        [name.to_owned(), format!("{}-{name}", self.infra_id)]
    }

    /// An endpoint that connects to the private link service.
    pub(super) fn endpoint(&self, name: &str, link: &Link) -> Value {
        json!({
            "location": self.location,
            "tags": self.tags("private-endpoint"),
            "properties": {
                "subnet": { "id": self.subnet },
                "manualPrivateLinkServiceConnections": [{
                    "name": name,
                    "properties": { "privateLinkServiceId": link.alias, "requestMessage": MESSAGE },
                }],
            },
        })
    }

    /// The zone of the cluster.
    pub(super) fn own_zone(&self) -> Value {
        json!({ "location": "global", "tags": self.tags("private-dns-zone") })
    }

    /// The zone of the base domain.
    pub(super) fn shared_zone() -> Value {
        json!({ "location": "global", "tags": { TYPE: SHARED_ZONE } })
    }

    /// The link of a zone to the network of the cluster.
    pub(super) fn network_link(&self) -> Value {
        json!({
            "location": "global",
            "tags": self.tags(NETWORK_LINK),
            "properties": {
                "virtualNetwork": { "id": self.network },
                "registrationEnabled": false,
            },
        })
    }

    /// Whether a zone is linked to the network of the cluster by this.
    pub(super) fn is_linked(&self, network_link: &Value) -> bool {
        let network = network_link["properties"]["virtualNetwork"]["id"].as_str();
        network.is_some_and(|it| is_same(it, &self.network))
    }

    /// A record that leads to an address.
    pub(super) fn record(&self, address: &str) -> Value {
        json!({ "properties": {
            "ttl": TTL,
            "metadata": { RECORD_ID: self.key() },
            "aRecords": [{ "ipv4Address": address }],
        } })
    }

    /// Whether a record is the cluster's.
    pub(super) fn owns_record(&self, record: &Value) -> bool {
        record["properties"]["metadata"][RECORD_ID] == self.key()
    }

    /// What becomes of a record that exists, in a zone that is the cluster's or not.
    pub(super) fn change(&self, live: &Value, address: &str, is_own_zone: bool) -> Record {
        let properties = &live["properties"];
        let wanted = self.record(address);
        let wanted = &wanted["properties"];
        let leads_there = properties["aRecords"] == wanted["aRecords"];
        let is_own = self.owns_record(live);
        let is_said = !properties["metadata"][RECORD_ID].is_null();
        if leads_there && is_own && properties["ttl"] == wanted["ttl"] {
            return Record::Same;
        }
        if is_own || !is_said && (is_own_zone || leads_there) {
            return Record::Write;
        }
        Record::Foreign
    }
}

// === impl Link ===

impl Link {
    /// The name of its endpoint.
    pub(super) fn endpoint(&self) -> String {
        format!("{}-pe", self.name)
    }

    /// The name of the link of a zone to the network: of the cluster's own zone, and of the zone of the base domain.
    pub(super) fn network_link(&self) -> String {
        format!("{}-vnet-link", self.name)
    }

    pub(super) fn shared_network_link(&self) -> String {
        format!("{}-basedomain-vnet-link", self.name)
    }

    /// The names in the zone of the cluster that lead to its endpoint.
    pub(super) fn records(&self) -> &'static [&'static str] {
        match self.name.as_str() {
            ROUTER => &["api", "*.apps"],
            _ => &[],
        }
    }

    /// The names in the zone of the base domain that lead to its endpoint.
    pub(super) fn shared_records(&self, cluster: &Cluster) -> Vec<String> {
        let (api, oauth) = (
            format!("api-{}", cluster.name),
            format!("oauth-{}", cluster.name),
        );
        match self.name.as_str() {
            ROUTER if self.has_oauth => vec![api],
            ROUTER => vec![api, oauth],
            OAUTH => vec![oauth],
            _ => Vec::new(),
        }
    }
}

/// What becomes of an endpoint.
pub(super) fn endpoint(found: &Value) -> Endpoint {
    match (state(found), connection(found)) {
        (State::Failed, _) => Endpoint::Useless,
        (_, "rejected" | "disconnected") => Endpoint::Useless,
        (State::Ready, "approved") => Endpoint::Connected,
        (State::Ready | State::Busy, _) => Endpoint::Waiting,
    }
}

/// The state of the connection of an endpoint.
fn connection(found: &Value) -> &'static str {
    let connection = &found["properties"]["manualPrivateLinkServiceConnections"][0]["properties"];
    let state = &connection["privateLinkServiceConnectionState"]["status"];
    let state = state.as_str().unwrap_or_default().to_ascii_lowercase();
    let known = ["approved", "pending", "rejected", "disconnected"];
    known
        .into_iter()
        .find(|it| *it == state)
        .unwrap_or_default()
}

/// The ID of the network interface of an endpoint.
pub(super) fn interface(found: &Value) -> Option<&str> {
    let id = found["properties"]["networkInterfaces"][0]["id"].as_str();
    id.filter(|it| is_id(it))
}

/// The address of a network interface.
pub(super) fn address(interface: &Value) -> Option<&str> {
    let configuration = &interface["properties"]["ipConfigurations"][0];
    configuration["properties"]["privateIPAddress"].as_str()
}

/// Whether the last cluster deletes a zone.
pub(super) fn is_shared_zone(zone: &Value) -> bool {
    tag(zone, TYPE) == Some(SHARED_ZONE)
}

/// Whether the link of a zone to a network was made for a cluster.
pub(super) fn is_made_link(network_link: &Value) -> bool {
    tag(network_link, TYPE) == Some(NETWORK_LINK)
}

/// Whether a record was made for a cluster.
pub(super) fn is_of_cluster(record: &Value) -> bool {
    !record["properties"]["metadata"][RECORD_ID].is_null()
}

/// Whether a set of records was made by someone, and not by Azure.
pub(super) fn is_made(record: &Value) -> bool {
    let type_ = record["type"].as_str().unwrap_or_default();
    !type_.ends_with("/SOA")
}
