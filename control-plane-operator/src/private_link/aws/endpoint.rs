//! Makes the endpoint of a private link with its security group and its DNS records, and deletes them. Each call may be the
//! last one of this process: the next pass begins with what it finds.

use api::hypershift::v1beta1::AwsEndpointServiceStatus;

use super::cloud::{Cloud, Endpoint, Group, NewEndpoint};
use super::plan::{self, Cluster, Link, Problem};
use super::records;

/// The most names that an AWSEndpointService has.
const MOST_NAMES: usize = 10;

/// How far it has come.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Progress {
    /// The status has to be written before it goes on: it says what to clean up.
    Record(AwsEndpointServiceStatus),
    /// It is as it is to be.
    Done(AwsEndpointServiceStatus),
}

/// How a deletion went on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Removal {
    Done,
    /// AWS is still deleting.
    Waiting,
}

/// Makes it. The status has no conditions of this pass.
pub(super) async fn ensure(
    cloud: &impl Cloud,
    cluster: &Cluster,
    link: &Link,
) -> Result<Progress, Problem> {
    let group = ensure_group(cloud, cluster, link).await?;
    let subnets = match cloud.subnets(&link.subnets).await {
        Ok(found) => plan::one_per_zone(&link.subnets, &found),
        // What is wrong with them, the endpoint says.
        Err(_) => link.subnets.clone(),
    };
    let endpoint = ensure_endpoint(cloud, cluster, link, &subnets, &group).await?;
    let mut status = AwsEndpointServiceStatus {
        endpoint_id: Some(endpoint.id.clone()),
        dns_names: endpoint.hosts.iter().take(MOST_NAMES).cloned().collect(),
        security_group_id: Some(group),
        ..link.status.clone()
    };
    if status != link.status {
        return Ok(Progress::Record(status));
    }
    let Some(host) = endpoint.hosts.first() else {
        return Err(Problem::Input(format!(
            "waiting for VPC endpoint {} to have a DNS name",
            endpoint.id
        )));
    };
    status.dns_zone_id = Some(records::publish(cloud, cluster, link, host).await?);
    Ok(Progress::Done(status))
}

/// Deletes it. What is not the cluster's is left as it is.
///
/// The records go first: without the endpoint, it would not be known that they have led to it.
pub(super) async fn remove(
    cloud: &impl Cloud,
    cluster: &Cluster,
    link: &Link,
) -> Result<Removal, Problem> {
    let endpoints = find(cloud, cluster, link).await?;
    let hosts = endpoints.iter().flat_map(|it| &it.hosts);
    let hosts: Vec<_> = hosts.chain(&link.status.dns_names).cloned().collect();
    // A zone that cannot be changed does not hold up what costs money.
    let withdrawn = records::withdraw(cloud, cluster, link, &hosts).await;
    for endpoint in &endpoints {
        if !plan::is_going(endpoint) {
            cloud.delete_endpoint(&endpoint.id).await?;
        }
    }
    if !endpoints.is_empty() {
        return Ok(Removal::Waiting);
    }
    let group = match own_group(cloud, cluster, link).await {
        // Another one's is left.
        Err(Problem::Input(_)) => None,
        group => group?,
    };
    let is_deleted = match group {
        Some(group) => cloud.delete_group(&group.id).await?,
        None => true,
    };
    withdrawn?;
    Ok(if is_deleted {
        Removal::Done
    } else {
        // An endpoint still has it.
        Removal::Waiting
    })
}

async fn ensure_group(
    cloud: &impl Cloud,
    cluster: &Cluster,
    link: &Link,
) -> Result<String, Problem> {
    let group = if let Some(group) = own_group(cloud, cluster, link).await? {
        group
    } else {
        let tags = link.group_tags(cluster);
        let name = link.group(cluster);
        Group {
            id: cloud.create_group(&name, &cluster.vpc, &tags).await?,
            ..Group::default()
        }
    };
    let missing = plan::missing_rules(&link.rules(cluster), &group);
    if !missing.is_empty() {
        cloud.allow(&group.id, &missing).await?;
    }
    Ok(group.id)
}

async fn own_group(
    cloud: &impl Cloud,
    cluster: &Cluster,
    link: &Link,
) -> Result<Option<Group>, Problem> {
    let name = link.group(cluster);
    let found = cloud.group(&name, &cluster.vpc).await?;
    match found {
        Some(group) if !cluster.owns(&group.tags) => Err(Problem::Input(format!(
            "security group {name} ({}) of VPC {} is not the one of this cluster, by its tags: another cluster has \
             spec.infraID {}, or someone else has created it. Delete it if it is not in use",
            group.id, cluster.vpc, cluster.infra_id
        ))),
        found => Ok(found),
    }
}

async fn ensure_endpoint(
    cloud: &impl Cloud,
    cluster: &Cluster,
    link: &Link,
    subnets: &[String],
    group: &str,
) -> Result<Endpoint, Problem> {
    let mut found = find(cloud, cluster, link).await?;
    if let Some(useless) = found
        .iter()
        .find(|it| plan::is_going(it) || plan::is_useless(it, &link.service))
    {
        if !plan::is_going(useless) {
            cloud.delete_endpoint(&useless.id).await?;
        }
        return Err(Problem::Input(format!(
            "waiting for AWS to delete VPC endpoint {}, which does not lead to endpoint service {}",
            useless.id, link.service
        )));
    }
    if found.is_empty() {
        let new = NewEndpoint {
            vpc: &cluster.vpc,
            service: &link.service,
            subnets,
            group,
            tags: link.endpoint_tags(cluster),
        };
        return Ok(cloud.create_endpoint(&new).await?);
    }
    let endpoint = found.swap_remove(0);
    if let Some(change) = plan::change(&endpoint, subnets, group) {
        cloud.modify_endpoint(&endpoint.id, &change).await?;
    }
    Ok(endpoint)
}

/// The endpoints that are the link's: the one that the status names, or else those with its tags.
async fn find(
    cloud: &impl Cloud,
    cluster: &Cluster,
    link: &Link,
) -> Result<Vec<Endpoint>, Problem> {
    let recorded = match link.status.endpoint_id.as_deref() {
        Some(id) if !id.is_empty() => cloud.endpoint(id).await?,
        Some(_) | None => None,
    };
    let is_own = |it: &Endpoint| !plan::is_gone(it) && link.owns(it, cluster);
    let mut own: Vec<_> = recorded.into_iter().filter(is_own).collect();
    if own.is_empty() {
        let marks = link.marks(cluster);
        let found = cloud.endpoints(&cluster.vpc, &marks).await?;
        own.extend(found.into_iter().filter(is_own));
    }
    Ok(own)
}
