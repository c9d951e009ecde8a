//! What a private link means in the account of the cluster: names, tags, rules, records, and whose things are. Pure.
//!
//! Clusters of other tenants may be in the same account, or even in the same VPC. What is found by its name or by tags is
//! changed only if its tags say that it is this cluster's.

use std::collections::{BTreeMap, BTreeSet};

use api::hypershift::v1beta1::services::{PublishingStrategyType, ServiceType};
use api::hypershift::v1beta1::{AwsEndpointServiceStatus, HostedControlPlane};
use support::aws;
use support::ec2::Tags;

use super::cloud::{Change, Endpoint, Group, Rule, Subnet, Zone};

/// The Service of the API server, and that of the router of all other services.
pub(super) const API_SERVER: &str = "kube-apiserver-private";
pub(super) const ROUTER: &str = "private-router";
/// The tag of endpoints with the name of their AWSEndpointService.
const LINK: &str = "AWSEndpointService";
/// The tag with the ID of the cluster. What other operators have created does not have it.
const CLUSTER_ID: &str = "hypershift.openshift.io/cluster-id";
const OWNED: &str = "owned";

/// The cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cluster {
    pub(super) name: String,
    pub(super) infra_id: String,
    pub(super) id: Option<String>,
    pub(super) vpc: String,
    pub(super) machine_cidrs: Vec<String>,
    /// The zone of a shared VPC.
    pub(super) local_zone: Option<String>,
    pub(super) is_api_server_by_route: bool,
    /// Tags of the user.
    pub(super) tags: Tags,
}

/// An AWSEndpointService.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Link {
    pub(super) name: String,
    /// The name of the VPC endpoint service; empty if there is none yet.
    pub(super) service: String,
    pub(super) subnets: Vec<String>,
    pub(super) status: AwsEndpointServiceStatus,
}

/// Why a private link is not as it is to be.
#[derive(Debug)]
pub(super) enum Problem {
    /// Something is not there yet, or an input is wrong: the message says so.
    Input(String),
    Aws(aws::Error),
}

// === impl Problem ===

impl From<aws::Error> for Problem {
    fn from(error: aws::Error) -> Self {
        Self::Aws(error)
    }
}

impl Problem {
    /// For the author of the cluster. The details of AWS differ each time, and are in the log.
    pub(super) fn message(&self) -> String {
        match self {
            Self::Input(message) => message.clone(),
            Self::Aws(error) => match error.code() {
                "" => "failed to reconcile the VPC endpoint: AWS could not be used. It is tried again; the log of the \
                       control-plane-operator has the cause"
                    .to_owned(),
                code => format!(
                    "failed to reconcile the VPC endpoint: AWS refuses it ({code}). Check the permissions of the role \
                     spec.platform.aws.rolesRef.controlPlaneOperatorARN, and the limits of the account; the log of the \
                     control-plane-operator has the details"
                ),
            },
        }
    }

    /// Whether there were too many requests.
    pub(super) fn is_throttled(&self) -> bool {
        matches!(self, Self::Aws(error) if error.is_throttled())
    }
}

// === impl Cluster ===

impl Cluster {
    /// The cluster of a control plane on AWS.
    pub(super) fn of(hcp: &HostedControlPlane) -> Result<Self, Problem> {
        let spec = &hcp.spec;
        let aws = spec.platform.aws.as_ref();
        let network = aws.and_then(|it| it.cloud_provider_config.as_ref());
        let (Some(aws), Some(network)) = (aws, network) else {
            return Err(Problem::Input(
                "spec.platform.aws.cloudProviderConfig is required for a private cluster: set its vpc".to_owned(),
            ));
        };
        let mut services = spec.services.iter();
        let api_server = services.find(|it| it.service == ServiceType::ApiServer);
        let way = api_server.map(|it| it.service_publishing_strategy.type_);
        let networks = spec.networking.iter().flat_map(|it| &it.machine_network);
        let tags = aws.resource_tags.iter();
        Ok(Self {
            name: hcp.metadata.name.clone().unwrap_or_default(),
            infra_id: spec.infra_id.clone(),
            id: spec.cluster_id.clone(),
            vpc: network.vpc.clone(),
            machine_cidrs: networks.map(|it| it.cidr.0.clone()).collect(),
            local_zone: aws.shared_vpc.as_ref().map(|it| it.local_zone_id.clone()),
            is_api_server_by_route: way == Some(PublishingStrategyType::Route),
            tags: tags.map(|it| (it.key.clone(), it.value.clone())).collect(),
        })
    }

    fn owned_tag(&self) -> String {
        format!("kubernetes.io/cluster/{}", self.infra_id)
    }

    /// The tags of what is created: the user's do not replace those that say whose it is.
    fn own_tags(&self) -> Tags {
        let mut tags = self.tags.clone();
        tags.insert(self.owned_tag(), OWNED.to_owned());
        if let Some(id) = &self.id {
            tags.insert(CLUSTER_ID.to_owned(), id.clone());
        }
        tags
    }

    /// Whether something with these tags is the cluster's.
    pub(super) fn owns(&self, tags: &Tags) -> bool {
        let is_own = tags.get(&self.owned_tag()).is_some_and(|it| it == OWNED);
        let id = tags.get(CLUSTER_ID);
        is_own && id.is_none_or(|id| self.id.as_ref() == Some(id))
    }

    /// The name of its private zone.
    pub(super) fn zone(&self) -> String {
        format!("{}.hypershift.local", self.name)
    }
}

// === impl Link ===

impl Link {
    /// The tags by which its endpoint is found, also one that another operator has created.
    pub(super) fn marks(&self, cluster: &Cluster) -> Tags {
        Tags::from([
            (cluster.owned_tag(), OWNED.to_owned()),
            (LINK.to_owned(), self.name.clone()),
        ])
    }

    /// The tags of its endpoint.
    pub(super) fn endpoint_tags(&self, cluster: &Cluster) -> Tags {
        let mut tags = cluster.own_tags();
        tags.insert(LINK.to_owned(), self.name.clone());
        tags
    }

    /// Whether an endpoint is its own.
    pub(super) fn owns(&self, endpoint: &Endpoint, cluster: &Cluster) -> bool {
        endpoint.vpc == cluster.vpc
            && cluster.owns(&endpoint.tags)
            && endpoint.tags.get(LINK) == Some(&self.name)
    }

    /// The name of its security group.
    pub(super) fn group(&self, cluster: &Cluster) -> String {
        format!("{}-vpce-{}", cluster.infra_id, self.name)
    }

    /// The tags of its security group.
    pub(super) fn group_tags(&self, cluster: &Cluster) -> Tags {
        let mut tags = cluster.own_tags();
        tags.insert("Name".to_owned(), self.group(cluster));
        tags
    }

    /// Who may connect: the machines.
    pub(super) fn rules(&self, cluster: &Cluster) -> BTreeSet<Rule> {
        let port = if self.name == API_SERVER { 6443 } else { 443 };
        let cidrs = cluster.machine_cidrs.iter().cloned();
        cidrs.map(|cidr| Rule { port, cidr }).collect()
    }

    /// The names that lead to its endpoint.
    pub(super) fn records(&self, cluster: &Cluster) -> Vec<String> {
        let names: &[&str] = match self.name.as_str() {
            API_SERVER => &["api"],
            ROUTER if cluster.is_api_server_by_route => &["api", "*.apps"],
            ROUTER => &["*.apps"],
            _ => &[],
        };
        let zone = cluster.zone();
        names.iter().map(|name| format!("{name}.{zone}")).collect()
    }

    /// All names that may lead to its endpoint, or have led to it.
    pub(super) fn all_records(&self, cluster: &Cluster) -> Vec<String> {
        self.records(&Cluster {
            is_api_server_by_route: true,
            ..cluster.clone()
        })
    }
}

/// The rules that a security group lacks.
pub(super) fn missing_rules(desired: &BTreeSet<Rule>, live: &Group) -> Vec<Rule> {
    desired.difference(&live.ingress).cloned().collect()
}

/// One subnet for each availability zone, the first one by its ID: an endpoint takes no more.
pub(super) fn one_per_zone(ids: &[String], found: &[Subnet]) -> Vec<String> {
    let zones: BTreeMap<_, _> = found.iter().map(|it| (&it.id, &it.zone)).collect();
    let mut taken = BTreeSet::new();
    let ids: BTreeSet<_> = ids.iter().collect();
    let chosen = ids
        .into_iter()
        .filter(|id| zones.get(id).is_none_or(|zone| taken.insert(*zone)));
    chosen.cloned().collect()
}

/// How an endpoint is changed, if it is. The last subnets are not removed: without NodePools there are none to connect.
pub(super) fn change(live: &Endpoint, subnets: &[String], group: &str) -> Option<Change> {
    let desired: BTreeSet<_> = subnets.iter().cloned().collect();
    let mut change = Change::default();
    if !desired.is_empty() {
        change.added_subnets = desired.difference(&live.subnets).cloned().collect();
        change.removed_subnets = live.subnets.difference(&desired).cloned().collect();
    }
    if !live.groups.contains(group) {
        change.added_groups.push(group.to_owned());
    }
    (change != Change::default()).then_some(change)
}

/// Whether an endpoint is not there any more.
pub(super) fn is_gone(endpoint: &Endpoint) -> bool {
    endpoint.state.eq_ignore_ascii_case("deleted")
}

/// Whether an endpoint is being deleted.
pub(super) fn is_going(endpoint: &Endpoint) -> bool {
    endpoint.state.eq_ignore_ascii_case("deleting")
}

/// Whether an endpoint never connects any more, or connects to something else.
pub(super) fn is_useless(endpoint: &Endpoint, service: &str) -> bool {
    let state = endpoint.state.to_ascii_lowercase();
    ["rejected", "failed", "expired"].contains(&state.as_str()) || endpoint.service != service
}

/// The endpoint that a name of AWS leads to: `vpce-<id>-<more>.…`.
pub(super) fn endpoint_of(host: &str) -> Option<String> {
    let label = host.split('.').next()?;
    let rest = label.strip_prefix("vpce-")?;
    let id = rest.split('-').next().filter(|it| !it.is_empty())?;
    let is_id = id.bytes().all(|it| it.is_ascii_alphanumeric());
    is_id.then(|| format!("vpce-{id}"))
}

/// The private zone of a name, among those of all VPCs. Of two with one name, it is the one that was used before.
pub(super) fn zone(
    found: &[Zone],
    name: &str,
    before: Option<&str>,
) -> Result<Option<String>, Problem> {
    let named: Vec<_> = found.iter().filter(|it| it.name == name).collect();
    let known = named.iter().find(|it| Some(it.id.as_str()) == before);
    match (named.as_slice(), known) {
        (_, Some(known)) => Ok(Some(known.id.clone())),
        ([], None) => Ok(None),
        ([one], None) => Ok(Some(one.id.clone())),
        (several, None) => Err(Problem::Input(format!(
            "Route 53 has {} private zones {name}, and which one is that of the VPC is not known: permit \
             route53:ListHostedZonesByVPC to the role spec.platform.aws.rolesRef.controlPlaneOperatorARN",
            several.len()
        ))),
    }
}
