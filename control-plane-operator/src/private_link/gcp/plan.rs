//! What Private Service Connect means in the project of the cluster: names, zones, records, and whose things are. Pure.
//!
//! Clusters of other tenants may be in the same project, and have the same name. What is found by its name is changed only if
//! its description does not say that it is another cluster's.

use api::hypershift::v1beta1::{GcpPrivateServiceConnect, HostedControlPlane};
use kube::ResourceExt as _;
use serde_json::{Value, json};
use support::google_resources::{Region, is_name, is_same};

use super::status::ERROR;
use crate::private_link::problem::Problem;

/// The Service that is reached by Private Service Connect.
pub(super) const ROUTER: &str = "private-router";
/// The kinds of what is made.
pub(super) const ADDRESSES: &str = "addresses";
pub(super) const RULES: &str = "forwardingRules";
/// What descriptions say before the ID of the cluster.
const OWNER: &str = "hypershift.openshift.io/cluster-id=";
/// How long resolvers keep a record, in seconds: an address, and a name.
const ADDRESS_TTL: u32 = 60;
const NAME_TTL: u32 = 300;
/// The longest name of a zone, and of the part of it that is the base domain.
const LONGEST: usize = 63;
const LONGEST_BASE: usize = 55;
/// Types of records that zones have by themselves.
const BUILT_IN: [&str; 2] = ["SOA", "NS"];

/// The cluster, and where its things are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cluster {
    pub(super) name: String,
    pub(super) infra_id: String,
    pub(super) id: Option<String>,
    pub(super) region: Region,
    /// The full name of its network, and of the subnet of the endpoint.
    pub(super) network: String,
    pub(super) subnet: String,
    pub(super) base_domain: String,
}

/// The service attachment that the endpoint leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Attachment {
    pub(super) name: String,
    /// Its full name.
    pub(super) uri: String,
}

/// Whose something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    Cluster,
    /// It is not said.
    Unclaimed,
    Another,
}

/// A zone that is to be there, with its records.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Zone {
    pub(super) name: String,
    pub(super) wanted: Value,
    pub(super) records: Vec<Value>,
}

/// What becomes of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Endpoint {
    /// It is connected.
    Connected,
    /// The service attachment has not accepted it yet.
    Waiting,
    /// It leads elsewhere, or never connects any more.
    Useless,
}

/// A change of the records of a zone.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Change {
    pub(super) additions: Vec<Value>,
    pub(super) deletions: Vec<Value>,
}

// === impl Cluster ===

impl Cluster {
    /// The cluster of a control plane.
    pub(super) fn of(hcp: &HostedControlPlane) -> Result<Self, Problem> {
        let Some(gcp) = &hcp.spec.platform.gcp else {
            let message = "spec.platform.gcp is required: set it";
            return Err(Problem::input(ERROR, message));
        };
        let network = &gcp.network_config.network.name;
        let subnet = &gcp.network_config.private_service_connect_subnet.name;
        for (field, value) in [
            ("project", &gcp.project),
            ("region", &gcp.region),
            ("networkConfig.network", network),
            ("networkConfig.privateServiceConnectSubnet", subnet),
        ] {
            if !is_name(value) {
                let message =
                    format!("spec.platform.gcp.{field} {value:?} is not a name: correct it");
                return Err(Problem::input(ERROR, message));
            }
        }
        let region = Region {
            project: gcp.project.clone(),
            name: gcp.region.clone(),
        };
        Ok(Self {
            name: hcp.name_any(),
            infra_id: hcp.spec.infra_id.clone(),
            id: hcp.spec.cluster_id.clone(),
            network: format!("projects/{}/global/networks/{network}", gcp.project),
            subnet: region.full_name("subnetworks", subnet),
            region,
            base_domain: hcp.spec.dns.base_domain.to_ascii_lowercase(),
        })
    }

    /// The description of what is created.
    fn description(&self) -> String {
        let id = self.id.as_deref().unwrap_or(&self.infra_id);
        format!("{OWNER}{id}")
    }

    /// Whose a resource is.
    pub(super) fn owner_of(&self, resource: &Value) -> Owner {
        let description = resource["description"].as_str().unwrap_or_default();
        if description == self.description() {
            return Owner::Cluster;
        }
        if description.starts_with(OWNER) {
            return Owner::Another;
        }
        Owner::Unclaimed
    }

    /// The address of the endpoint.
    pub(super) fn address(&self, attachment: &Attachment) -> Value {
        json!({
            "name": attachment.address(),
            "description": self.description(),
            "addressType": "INTERNAL",
            "subnetwork": self.subnet,
        })
    }

    /// The forwarding rule of the endpoint, which has no load balancing scheme.
    pub(super) fn rule(&self, attachment: &Attachment) -> Value {
        json!({
            "name": attachment.rule(),
            "description": self.description(),
            "target": attachment.uri,
            "network": self.network,
            "IPAddress": self.region.full_name(ADDRESSES, &attachment.address()),
        })
    }

    /// The zones, with the records that lead to the endpoint.
    pub(super) fn zones(&self, address: &str) -> Vec<Zone> {
        let local = format!("{}.hypershift.local.", self.name);
        let records = ["api", "*.apps"]
            .map(|name| record(&format!("{name}.{local}"), "A", ADDRESS_TTL, address));
        let own = zone_name(&format!("{}-hypershift-local", self.name));
        let mut zones = vec![self.zone(&own, &local, "private", records.into())];
        if self.base_domain.is_empty() {
            return zones;
        }
        let domain = format!("{}.", self.base_domain);
        // Certificates of the ingress are issued with records of the parent domain.
        let challenge = record(
            &format!("_acme-challenge.apps.{domain}"),
            "CNAME",
            NAME_TTL,
            &format!("_acme-challenge.{domain}"),
        );
        let base = shortened(&self.base_domain.replace('.', "-"), LONGEST_BASE);
        let (public, private) = (format!("{base}-public"), format!("{base}-private"));
        zones.push(self.zone(&public, &domain, "public", vec![challenge]));
        zones.push(self.zone(&private, &domain, "private", Vec::new()));
        zones
    }

    fn zone(&self, name: &str, domain: &str, visibility: &str, records: Vec<Value>) -> Zone {
        let mut wanted = json!({
            "name": name,
            "dnsName": domain,
            "description": self.description(),
            "visibility": visibility,
        });
        if visibility == "private" {
            let url = format!("https://www.googleapis.com/compute/v1/{}", self.network);
            wanted["privateVisibilityConfig"] = json!({ "networks": [{ "networkUrl": url }] });
        }
        Zone {
            name: name.to_owned(),
            wanted,
            records,
        }
    }

    /// The delegation of the public zone of the base domain to its name servers, for external-dns.
    pub(super) fn delegation(&self, name_servers: &[String]) -> Value {
        let targets = name_servers.iter().map(|it| it.trim_end_matches('.'));
        json!({ "endpoints": [{
            "dnsName": self.base_domain,
            "recordType": "NS",
            "recordTTL": NAME_TTL,
            "targets": targets.collect::<Vec<_>>(),
        }] })
    }
}

// === impl Attachment ===

impl Attachment {
    /// The one of a link, once there is one.
    pub(super) fn of(live: &GcpPrivateServiceConnect) -> Option<Self> {
        let status = live.status.as_ref()?;
        let name = status.service_attachment_name.clone()?;
        let uri = status.service_attachment_uri.clone()?;
        (is_name(&name) && !uri.is_empty()).then_some(Self { name, uri })
    }

    /// The name of the address.
    pub(super) fn address(&self) -> String {
        format!("{}-ip", self.name)
    }

    /// The name of the forwarding rule.
    pub(super) fn rule(&self) -> String {
        format!("{}-endpoint", self.name)
    }
}

// === impl Zone ===

impl Zone {
    /// Whether it is the public one.
    pub(super) fn is_public(&self) -> bool {
        self.wanted["visibility"] == "public"
    }

    /// The names of its records.
    pub(super) fn names(&self) -> Vec<String> {
        let names = self.records.iter().filter_map(|it| it["name"].as_str());
        names.map(str::to_owned).collect()
    }

    /// How its records are changed, if they are; or the name of one that someone else has made, in a zone that is not the
    /// cluster's.
    pub(super) fn change(&self, live: &[Value], is_own: bool) -> Result<Option<Change>, String> {
        let mut change = Change::default();
        for wanted in &self.records {
            let found = live.iter().find(|it| is_of(it, wanted));
            match found.map(bare) {
                Some(found) if found == *wanted => {}
                Some(_) if !is_own => {
                    return Err(wanted["name"].as_str().unwrap_or_default().to_owned());
                }
                found => {
                    change.deletions.extend(found);
                    change.additions.push(wanted.clone());
                }
            }
        }
        Ok((change != Change::default()).then_some(change))
    }

    /// The records that go before the zone: all of them, or in a zone that is not the cluster's those that lead to its
    /// endpoint.
    pub(super) fn removal(&self, live: &[Value], is_own: bool) -> Vec<Value> {
        let all = live.iter().map(bare);
        all.filter(|it| {
            let type_ = it["type"].as_str().unwrap_or_default();
            !BUILT_IN.contains(&type_) && (is_own || self.records.contains(it))
        })
        .collect()
    }
}

/// What becomes of the forwarding rule of an endpoint.
pub(super) fn endpoint(rule: &Value, attachment: &Attachment) -> Endpoint {
    let target = rule["target"].as_str().unwrap_or_default();
    match rule["pscConnectionStatus"].as_str() {
        _ if !is_same(target, &attachment.uri) => Endpoint::Useless,
        Some("REJECTED" | "CLOSED") => Endpoint::Useless,
        Some("ACCEPTED") => Endpoint::Connected,
        Some(_) | None => Endpoint::Waiting,
    }
}

/// The name servers of a zone.
pub(super) fn name_servers(zone: &Value) -> Vec<String> {
    let all = zone["nameServers"].as_array().into_iter().flatten();
    all.filter_map(|it| it.as_str().map(str::to_owned))
        .collect()
}

fn zone_name(name: &str) -> String {
    let name = name.replace('.', "-").to_ascii_lowercase();
    shortened(&name, LONGEST)
}

fn shortened(name: &str, longest: usize) -> String {
    let name: String = name.chars().take(longest).collect();
    name.trim_end_matches('-').to_owned()
}

fn record(name: &str, type_: &str, ttl: u32, value: &str) -> Value {
    json!({ "name": name, "type": type_, "ttl": ttl, "rrdatas": [value] })
}

/// A set of records without what Cloud DNS adds.
fn bare(found: &Value) -> Value {
    json!({
        "name": found["name"],
        "type": found["type"],
        "ttl": found["ttl"],
        "rrdatas": found["rrdatas"],
    })
}

/// Whether two sets of records have one name and type.
fn is_of(one: &Value, other: &Value) -> bool {
    one["name"] == other["name"] && one["type"] == other["type"]
}
