//! Makes the endpoint service of an AWSEndpointService, and deletes it. Each call may be the last one of this process: the
//! next pass begins with what it finds.

use super::cloud::{By, Cloud, Deleted, EndpointService, LoadBalancer};
use super::plan::{self, Connections, Desired, OWNER, Problem, Target};

/// How a deletion went on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Removal {
    Done,
    /// Endpoints are still connected.
    Waiting,
}

/// Makes it, and returns its name.
pub(super) async fn ensure(cloud: &impl Cloud, desired: &Desired) -> Result<String, Problem> {
    let target = &desired.target;
    let expected = target.balancer.as_ref();
    let found = balancer(cloud, expected).await?;
    let balancer = plan::proven(expected, found.as_ref()).map_err(Problem::Input)?;
    if !balancer.is_active {
        let name = target.balancer.as_ref().map_or("", |(name, _)| name);
        return Err(Problem::Input(format!(
            "waiting for load balancer {name} to be active"
        )));
    }
    let arn = balancer.arn.as_str();
    let own = find(cloud, target, Some(arn)).await?;
    let (current, outdated): (Vec<_>, Vec<_>) =
        own.into_iter().partition(|it| it.balancers == [arn]);
    for service in outdated {
        // The Service has got another load balancer.
        delete(cloud, &service).await?;
    }
    let service = match current.into_iter().next() {
        Some(service) => service,
        None => create(cloud, desired, arn).await?,
    };
    if service.tags.get(OWNER) != Some(&target.uid) {
        cloud.tag(&service.id, &desired.tags).await?;
    }
    let live = cloud.principals(&service.id).await?;
    let (added, removed) = plan::difference(&desired.principals, &live);
    if !added.is_empty() || !removed.is_empty() {
        cloud.permit(&service.id, &added, &removed).await?;
    }
    Ok(service.name)
}

/// Deletes it. Endpoint services that are not the cluster's are left as they are.
pub(super) async fn remove(cloud: &impl Cloud, target: &Target) -> Result<Removal, Problem> {
    let proven = proof(cloud, target.balancer.as_ref()).await?;
    let kept = proof(cloud, target.successor.as_ref()).await?;
    let mut removal = Removal::Done;
    for service in find(cloud, target, proven.as_deref()).await? {
        // AWS has one endpoint service for each load balancer: this one is the successor's.
        if kept
            .as_ref()
            .is_some_and(|arn| service.balancers.contains(arn))
        {
            continue;
        }
        if delete(cloud, &service).await? == Removal::Waiting {
            removal = Removal::Waiting;
        }
    }
    Ok(removal)
}

async fn balancer(
    cloud: &impl Cloud,
    expected: Option<&(String, String)>,
) -> Result<Option<LoadBalancer>, Problem> {
    match expected {
        Some((name, _)) => Ok(cloud.load_balancer(name).await?),
        None => Ok(None),
    }
}

/// The ARN of a load balancer, if it is the one of the Service.
async fn proof(
    cloud: &impl Cloud,
    expected: Option<&(String, String)>,
) -> Result<Option<String>, Problem> {
    let found = balancer(cloud, expected).await?;
    let proven = plan::proven(expected, found.as_ref()).ok();
    Ok(proven.map(|it| it.arn.clone()))
}

/// The endpoint services that are the cluster's: the one that the status names, or else those with the tag.
async fn find(
    cloud: &impl Cloud,
    target: &Target,
    proof: Option<&str>,
) -> Result<Vec<EndpointService>, Problem> {
    let mut own = Vec::new();
    if let Some(name) = target.recorded.as_deref().filter(|it| !it.is_empty()) {
        let found = cloud.services(By::Name(name)).await?;
        for service in found.into_iter().filter(|it| it.name == name) {
            if plan::is_own(&service, target, proof) {
                own.push(service);
            } else {
                tracing::warn!(
                    service = service.id,
                    "Ignoring a VPC endpoint service that is not the one of this AWSEndpointService"
                );
            }
        }
    }
    let tagged = cloud.services(By::Tag(OWNER, &target.uid)).await?;
    for service in tagged {
        let is_known = own.iter().any(|it: &EndpointService| it.id == service.id);
        if !is_known && plan::is_own(&service, target, proof) {
            own.push(service);
        }
    }
    Ok(own)
}

/// Creates it. AWS has one endpoint service for each load balancer: one that exists is taken over.
async fn create(
    cloud: &impl Cloud,
    desired: &Desired,
    arn: &str,
) -> Result<EndpointService, Problem> {
    match cloud.create(arn, &desired.tags).await {
        Err(error) if error.code() == "InvalidParameter" => {
            let found = cloud.services(By::Any).await?;
            let mut own = found.into_iter().filter(|it| it.balancers == [arn]);
            own.next().ok_or(Problem::Aws(error))
        }
        created => Ok(created?),
    }
}

async fn delete(cloud: &impl Cloud, service: &EndpointService) -> Result<Removal, Problem> {
    if cloud.delete(&service.id).await? == Deleted::Gone {
        return Ok(Removal::Done);
    }
    let found = cloud.connections(&service.id).await?;
    if let Connections::Reject(endpoints) = plan::connections(&found) {
        cloud.reject(&service.id, &endpoints).await?;
    }
    Ok(Removal::Waiting)
}
