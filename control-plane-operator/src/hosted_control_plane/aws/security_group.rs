//! The security group that every node of the cluster has: nodes reach one another, and are reached from their networks.
//!
//! A group on machines that run would replace them. So it is created for new clusters only, and only where node pools wait for
//! it; a group that there is already is kept up to date, also one of another operator.

mod ec2;

use std::collections::{BTreeMap, BTreeSet};

use api::annotations::cluster::CLEANUP_CLOUD_RESOURCES;
use api::conditions::ClusterCondition as Type;
use api::hypershift::v1beta1::HostedControlPlane;
use kube::Api;
use support::aws::{self, Client};
use support::error::chain;

use super::MANAGER;
use crate::hosted_control_plane::deletion;
use crate::hosted_control_plane::status::Evaluation;
use ec2::{Ec2, Group};

/// Annotation of the HostedControlPlane: the tags that the group got, as JSON. Tags that others add stay.
const APPLIED_TAGS: &str = "hypershift.openshift.io/last-applied-security-group-tags";
/// Codes that say that a role lacks a permission.
const DENIED: &str = "UnauthorizedOperation";

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Outcome {
    /// The group; none if it was deleted.
    pub(super) id: Option<String>,
    about: Type,
}

/// What could not be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failed {
    about: Type,
    message: String,
}

/// A rule of traffic to nodes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Rule {
    protocol: String,
    /// The first and the last port, or -1 for all.
    ports: (i32, i32),
    source: Source,
}

/// Where traffic comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    /// A group.
    Group(String),
    /// A range of addresses.
    Range(String),
}

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    Nothing,
    Keep,
    Delete,
}

/// Creates the group, keeps it up to date, or deletes it. Nothing if none of these is due.
pub(super) async fn ensure(
    hcp: &HostedControlPlane,
    client: &Client,
    management: &kube::Client,
    creates: bool,
) -> Option<Result<Outcome, Failed>> {
    let ec2 = Ec2 { client };
    let (about, result) = match due(hcp, creates) {
        Due::Nothing => return None,
        Due::Keep => (
            Type::AwsDefaultSecurityGroupCreated,
            keep(hcp, &ec2, management).await.map(Some),
        ),
        Due::Delete => (
            Type::AwsDefaultSecurityGroupDeleted,
            delete(hcp, &ec2).await.map(|()| None),
        ),
    };
    Some(match result {
        Ok(id) => Ok(Outcome { id, about }),
        Err(error) => Err(Failed {
            about,
            message: message(about, &error),
        }),
    })
}

/// The condition.
pub(super) fn evaluation(result: &Result<Outcome, Failed>) -> Evaluation {
    match result {
        Ok(done) => Evaluation::yes(done.about),
        Err(failed) => Evaluation::no(failed.about, "AWSError", failed.message.as_str()),
    }
}

fn due(hcp: &HostedControlPlane, creates: bool) -> Due {
    let is_known = deletion::security_group(hcp).is_some();
    if hcp.metadata.deletion_timestamp.is_some() {
        let none = BTreeMap::new();
        let annotations = hcp.metadata.annotations.as_ref().unwrap_or(&none);
        let is_due = is_known
            && CLEANUP_CLOUD_RESOURCES.is_true(annotations)
            && deletion::has_cleanup_ended(hcp);
        return if is_due { Due::Delete } else { Due::Nothing };
    }
    if is_known || creates && !has_nodes(hcp) {
        Due::Keep
    } else {
        Due::Nothing
    }
}

/// Whether a release was rolled out to nodes.
fn has_nodes(hcp: &HostedControlPlane) -> bool {
    let version = hcp
        .status
        .as_ref()
        .and_then(|it| it.version_status.as_ref());
    let mut history = version.iter().flat_map(|it| &it.history);
    history.any(|it| it.state == "Completed")
}

/// What the author of the cluster may know: no identifiers of requests.
fn message(about: Type, error: &aws::Error) -> String {
    let action = if about == Type::AwsDefaultSecurityGroupDeleted {
        "delete"
    } else {
        "create or update"
    };
    let cause = chain(error);
    tracing::warn!(error = cause, action, "Security group of nodes not changed");
    match error {
        aws::Error::Refused { code, message, .. } if code == "DependencyViolation" => {
            format!("failed to {action} the default security group of nodes: {message}")
        }
        aws::Error::Refused { code, .. } => format!(
            "failed to {action} the default security group of nodes ({code}): check the permissions of the role in \
             spec.platform.aws.rolesRef.controlPlaneOperatorARN"
        ),
        aws::Error::Response { problem, .. } => {
            format!("failed to {action} the default security group of nodes: {problem}")
        }
        _ => format!("failed to {action} the default security group of nodes: EC2 cannot be used"),
    }
}

async fn keep(
    hcp: &HostedControlPlane,
    ec2: &Ec2<'_>,
    management: &kube::Client,
) -> Result<String, aws::Error> {
    let name = name(&hcp.spec.infra_id);
    let tags = tags(hcp);
    let found = match deletion::security_group(hcp) {
        Some(id) => ec2.by_id(id).await?,
        None => None,
    };
    let found = match found {
        Some(found) => Some(found),
        None => ec2.by_tags(&name, &owned_tag(&hcp.spec.infra_id)).await?,
    };
    let group = match found {
        Some(found) => found,
        None => ec2.create(&name, vpc(hcp)?, &tags).await?,
    };
    let missing = missing(&rules(hcp, &group.id), &group.rules);
    if !missing.is_empty() {
        ec2.authorize(&group, &missing).await?;
    }
    match ec2_tags(hcp, ec2, &group, &tags).await {
        Ok(()) => remember(hcp, &tags, management).await,
        // A role that may create the group may lack this permission: the nodes work without the tags.
        Err(error) if error.code() == DENIED => {
            let problem = chain(&error);
            tracing::warn!(problem, "Tags of the security group of nodes not changed");
        }
        Err(error) => return Err(error),
    }
    Ok(group.id)
}

async fn delete(hcp: &HostedControlPlane, ec2: &Ec2<'_>) -> Result<(), aws::Error> {
    let Some(id) = deletion::security_group(hcp) else {
        return Ok(());
    };
    // The group of another cluster, or of none, is not deleted, whatever the status says.
    let own = owned_tag(&hcp.spec.infra_id);
    match ec2.by_id(id).await? {
        Some(group) if group.tags.get(&own).is_some_and(|it| it == "owned") => {
            ec2.delete(&group.id).await
        }
        Some(_) | None => Ok(()),
    }
}

/// Brings the tags up to date.
async fn ec2_tags(
    hcp: &HostedControlPlane,
    ec2: &Ec2<'_>,
    group: &Group,
    desired: &BTreeMap<String, String>,
) -> Result<(), aws::Error> {
    let (set, removed) = changes(applied(hcp).as_ref(), &group.tags, desired);
    if !set.is_empty() {
        ec2.set_tags(&group.id, &set).await?;
    }
    if !removed.is_empty() {
        ec2.remove_tags(&group.id, &removed).await?;
    }
    Ok(())
}

/// The tags that the group got.
fn applied(hcp: &HostedControlPlane) -> Option<BTreeMap<String, String>> {
    let annotations = hcp.metadata.annotations.as_ref()?;
    serde_json::from_str(annotations.get(APPLIED_TAGS)?).ok()
}

/// Records the tags, for the next change of them.
async fn remember(
    hcp: &HostedControlPlane,
    tags: &BTreeMap<String, String>,
    management: &kube::Client,
) {
    if applied(hcp).as_ref() == Some(tags) {
        return;
    }
    let Ok(text) = serde_json::to_string(tags) else {
        return;
    };
    let namespace = hcp.metadata.namespace.as_deref().unwrap_or_default();
    let api: Api<HostedControlPlane> = Api::namespaced(management.clone(), namespace);
    let annotations = BTreeMap::from([(APPLIED_TAGS, text.as_str())]);
    let written = support::apply::annotate(&api, &hcp.metadata, &annotations, MANAGER).await;
    if let Err(error) = written {
        // It is tried again: until then, no tag is removed.
        tracing::debug!(
            error = chain(&error),
            "Tags of the security group not recorded"
        );
    }
}

/// The tags to set, and the keys of those to remove. Without a record of what was applied, no tag is removed. Pure.
fn changes(
    applied: Option<&BTreeMap<String, String>>,
    live: &BTreeMap<String, String>,
    desired: &BTreeMap<String, String>,
) -> (BTreeMap<String, String>, Vec<String>) {
    let set = desired
        .iter()
        .filter(|(key, value)| live.get(*key) != Some(*value));
    let set = set.map(|(key, value)| (key.clone(), value.clone()));
    let removed = applied
        .into_iter()
        .flat_map(BTreeMap::keys)
        .filter(|key| live.contains_key(*key) && !desired.contains_key(*key));
    (set.collect(), removed.cloned().collect())
}

/// The name of the group.
fn name(infra_id: &str) -> String {
    format!("{infra_id}-default-sg")
}

/// The key of the tag of a cluster's resources.
fn owned_tag(infra_id: &str) -> String {
    format!("kubernetes.io/cluster/{infra_id}")
}

fn tags(hcp: &HostedControlPlane) -> BTreeMap<String, String> {
    let infra_id = &hcp.spec.infra_id;
    let aws = hcp.spec.platform.aws.iter();
    let mut tags: BTreeMap<_, _> = aws
        .flat_map(|it| &it.resource_tags)
        .map(|tag| (tag.key.clone(), tag.value.clone()))
        .collect();
    tags.insert(owned_tag(infra_id), "owned".to_owned());
    tags.insert("Name".to_owned(), name(infra_id));
    if hcp.spec.auto_node.is_some() {
        tags.insert("karpenter.sh/discovery".to_owned(), infra_id.clone());
    }
    tags
}

/// The network that the group is in.
fn vpc(hcp: &HostedControlPlane) -> Result<&str, aws::Error> {
    let aws = hcp.spec.platform.aws.as_ref();
    let vpc = aws
        .and_then(|it| it.cloud_provider_config.as_ref())
        .map(|it| it.vpc.as_str());
    vpc.filter(|it| !it.is_empty())
        .ok_or_else(|| aws::Error::Response {
            what: "CreateSecurityGroup".to_owned(),
            problem:
                "spec.platform.aws.cloudProviderConfig.vpc is not set, and it has to be in a VPC"
                    .to_owned(),
        })
}

/// The rules of a group, in order. Pure.
fn rules(hcp: &HostedControlPlane, group: &str) -> Vec<Rule> {
    // VXLAN, Geneve, IKE, NAT traversal and ESP of the network; services of hosts; the kubelet; node ports.
    let of_nodes = [
        ("udp", (4789, 4789)),
        ("udp", (6081, 6081)),
        ("udp", (500, 500)),
        ("udp", (4500, 4500)),
        ("50", (-1, -1)),
        ("tcp", (9000, 9999)),
        ("udp", (9000, 9999)),
        ("tcp", (10250, 10250)),
        ("tcp", (30000, 32767)),
        ("udp", (30000, 32767)),
    ];
    let rule = |(protocol, ports): (&str, (i32, i32)), source: &Source| Rule {
        protocol: protocol.to_owned(),
        ports,
        source: source.clone(),
    };
    let own = Source::Group(group.to_owned());
    let mut rules: Vec<_> = of_nodes.map(|it| rule(it, &own)).into();
    let networks = hcp
        .spec
        .networking
        .iter()
        .flat_map(|it| &it.machine_network);
    for network in networks {
        let range = Source::Range(network.cidr.0.clone());
        let of_network = [("icmp", (-1, -1)), ("tcp", (22, 22))];
        rules.extend(of_network.map(|it| rule(it, &range)));
    }
    rules
}

/// The rules that a group lacks. Others that it has stay. Pure.
fn missing(desired: &[Rule], found: &BTreeSet<Rule>) -> Vec<Rule> {
    let missing = desired.iter().filter(|it| !found.contains(it));
    missing.cloned().collect()
}

#[cfg(test)]
mod tests;
