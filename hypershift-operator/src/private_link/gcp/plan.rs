//! What a GCPPrivateServiceConnect means in Google Cloud: whose forwarding rules, service attachments and subnets are. Pure.
//!
//! The author of a HostedCluster chooses the image of the program that writes GCPPrivateServiceConnects, and the ID of the
//! cluster, which is in the name of the service attachment. So names prove nothing. A service attachment is the cluster's in
//! two cases: its description has the UID of the GCPPrivateServiceConnect, which only this operator writes; or it is for the
//! forwarding rule of the Service in the control plane's namespace, by the address and the name of that Service.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use support::google_resources::{is_same, name_of};

use crate::private_link::inputs::Balancer;

/// The Service that is reached by Private Service Connect.
pub(super) const ROUTER: &str = "private-router";
/// The kinds of what is looked for.
pub(super) const RULES: &str = "forwardingRules";
pub(super) const SUBNETS: &str = "subnetworks";
pub(super) const ATTACHMENTS: &str = "serviceAttachments";
/// What descriptions say before the UID of the GCPPrivateServiceConnect that a service attachment was created for.
const OWNER: &str = "hypershift.openshift.io/gcp-private-service-connect-uid=";
/// The purpose of subnets that service attachments take addresses from.
const PURPOSE: &str = "PRIVATE_SERVICE_CONNECT";
/// How many endpoints of a project may connect.
const LIMIT: u32 = 10;
/// Fields of the description of a forwarding rule with the Service that it was made for.
const SERVICE_NAMES: [&str; 2] = [
    "kubernetes.io/service-name",
    "networking.gke.io/service-name",
];

/// A GCPPrivateServiceConnect, as far as it can be relied on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) uid: String,
    /// The Service, as `namespace/name`.
    pub(super) service: String,
    /// Its load balancer, once it has one.
    pub(super) balancer: Option<Balancer>,
}

/// What is to be in Google Cloud.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Desired {
    pub(super) target: Target,
    /// The name of the service attachment.
    pub(super) name: String,
    /// The projects that may connect.
    pub(super) projects: BTreeSet<String>,
    /// The subnet that the GCPPrivateServiceConnect names.
    pub(super) subnet: Option<String>,
    /// The forwarding rule that it names.
    pub(super) recorded_rule: Option<String>,
}

/// A forwarding rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) name: String,
    pub(super) url: String,
    pub(super) network: String,
}

/// A service attachment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Attachment {
    pub(super) name: String,
    /// The URL of its forwarding rule.
    pub(super) rule: String,
    /// The URLs of its subnets.
    pub(super) subnets: Vec<String>,
    pub(super) description: String,
    /// The projects that may connect, with the number of their endpoints.
    pub(super) projects: BTreeSet<(String, u64)>,
    pub(super) fingerprint: String,
}

/// The name of the service attachment of a cluster.
pub(super) fn attachment_name(cluster_id: &str) -> String {
    format!("psc-{cluster_id}")
}

/// The filter of the forwarding rules with an address.
pub(super) fn filter(address: &str) -> String {
    format!("IPAddress=\"{address}\"")
}

/// The forwarding rule that has the address of the Service, and was not made for another one: Services can share an address,
/// and networks can have the same one.
pub(super) fn rule(found: &[Value], target: &Target, own: &Balancer) -> Result<Rule, String> {
    let address = &own.address;
    let mut candidates = Vec::new();
    let mut is_shared = false;
    for rule in found
        .iter()
        .filter(|it| it["IPAddress"] == address.as_str())
    {
        let name = text(&rule["name"]);
        let service = service_of(rule);
        let is_of_another = match service.as_deref() {
            Some(service) => service != target.service,
            None => own.is_of_another(name),
        };
        if is_of_another {
            is_shared = true;
            continue;
        }
        let is_exact = service.is_some() || own.is_named(name);
        candidates.push((is_exact, rule_of(rule)));
    }
    let exact = candidates.iter().position(|(is_exact, _)| *is_exact);
    match (exact, candidates.len()) {
        (Some(at), _) => Ok(candidates.swap_remove(at).1),
        (None, 1) => Ok(candidates.swap_remove(0).1),
        (None, 0) if is_shared => Err(format!(
            "address {address} is that of a forwarding rule that was made for another Service: waiting for the Service to \
             have an address of its own"
        )),
        (None, 0) => Err(format!(
            "waiting for a forwarding rule with address {address}, which the project of the management cluster does not have \
             in its region"
        )),
        (None, count) => Err(format!(
            "{count} forwarding rules in the project of the management cluster have address {address}, and none says that it \
             was made for Service {}: use networks with different addresses",
            target.service
        )),
    }
}

fn rule_of(found: &Value) -> Rule {
    Rule {
        name: text(&found["name"]).to_owned(),
        url: text(&found["selfLink"]).to_owned(),
        network: text(&found["network"]).to_owned(),
    }
}

/// The Service that a forwarding rule was made for, as the controller of load balancers describes it.
fn service_of(rule: &Value) -> Option<String> {
    let description: Value = serde_json::from_str(text(&rule["description"])).ok()?;
    let mut fields = SERVICE_NAMES.iter();
    fields.find_map(|field| description[*field].as_str().map(str::to_owned))
}

/// Whether a service attachment is the one of a GCPPrivateServiceConnect, for whose forwarding rule there may be a proof.
pub(super) fn is_own(found: &Attachment, target: &Target, rule: Option<&str>) -> bool {
    let is_described = found.description == description(target) && !target.uid.is_empty();
    is_described || rule.is_some_and(|rule| is_same(&found.rule, rule))
}

fn description(target: &Target) -> String {
    format!("{OWNER}{}", target.uid)
}

/// The URL of the subnet from which addresses are taken: the one that is named, or the first one that no service attachment
/// has. Two of them cannot have the same.
pub(super) fn subnet(
    subnets: &[Value],
    attachments: &[Attachment],
    desired: &Desired,
    rule: &Rule,
) -> Result<String, String> {
    let is_used = |url: &str| {
        let mut used = attachments.iter().flat_map(|it| &it.subnets);
        used.any(|it| is_same(it, url))
    };
    let suitable = subnets
        .iter()
        .filter(|it| it["purpose"] == PURPOSE && is_same(text(&it["network"]), &rule.network))
        .map(|it| text(&it["selfLink"]));
    let Some(name) = &desired.subnet else {
        let mut free = suitable.filter(|url| !is_used(url));
        let none = "the network of the management cluster has no free subnet of purpose PRIVATE_SERVICE_CONNECT in its \
                    region: waiting for its administrator to create one";
        return free
            .next()
            .map(str::to_owned)
            .ok_or_else(|| none.to_owned());
    };
    let mut suitable = suitable;
    match suitable.find(|url| name_of(url) == name.as_str()) {
        None => Err(format!(
            "spec.natSubnet is {name}, which is no subnet of purpose PRIVATE_SERVICE_CONNECT in the network of the management \
             cluster: remove it, or set it to one"
        )),
        Some(url) if is_used(url) => Err(format!(
            "spec.natSubnet is {name}, which another service attachment has: remove it, or set it to a free subnet"
        )),
        Some(url) => Ok(url.to_owned()),
    }
}

/// The service attachment as it is to be.
pub(super) fn resource(desired: &Desired, rule: &Rule, subnet: &str) -> Value {
    json!({
        "name": desired.name,
        "description": description(&desired.target),
        "targetService": rule.url,
        "connectionPreference": "ACCEPT_MANUAL",
        "enableProxyProtocol": false,
        "natSubnets": [subnet],
        "consumerAcceptLists": accepted(desired),
    })
}

/// What of a service attachment is changed, if anything is.
pub(super) fn change(found: &Attachment, desired: &Desired) -> Option<Value> {
    let projects = desired.projects.iter();
    let projects: BTreeSet<_> = projects.map(|it| (it.clone(), u64::from(LIMIT))).collect();
    let description = description(&desired.target);
    if found.projects == projects && found.description == description {
        return None;
    }
    Some(json!({
        "fingerprint": found.fingerprint,
        "description": description,
        "consumerAcceptLists": accepted(desired),
    }))
}

fn accepted(desired: &Desired) -> Vec<Value> {
    let projects = desired.projects.iter();
    projects
        .map(|it| json!({ "projectIdOrNum": it, "connectionLimit": LIMIT }))
        .collect()
}

// === impl Attachment ===

impl Attachment {
    pub(super) fn of(found: &Value) -> Self {
        let lists = items(&found["consumerAcceptLists"]).iter();
        let projects = lists.map(|it| {
            let limit = it["connectionLimit"].as_u64().unwrap_or_default();
            (text(&it["projectIdOrNum"]).to_owned(), limit)
        });
        let subnets = items(&found["natSubnets"]).iter();
        Self {
            name: text(&found["name"]).to_owned(),
            rule: text(&found["targetService"]).to_owned(),
            subnets: subnets.map(|it| text(it).to_owned()).collect(),
            description: text(&found["description"]).to_owned(),
            projects: projects.collect(),
            fingerprint: text(&found["fingerprint"]).to_owned(),
        }
    }
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
