//! The AWSEndpointServices of a private cluster on AWS.

use api::hypershift::v1beta1::AwsEndpointService;
use serde_json::json;

use crate::context::Context;
use crate::control_plane_namespace::owner;
use crate::error::Error;
use crate::facts::Facts;
use crate::hosted_cluster::deletion::list;
use crate::hosted_cluster::validate::private_access;
use crate::private_link::resource;

/// Those that are the cluster's. Other clusters have none.
pub(super) async fn of_cluster(
    facts: &Facts,
    ctx: &Context,
) -> Result<Vec<AwsEndpointService>, Error> {
    if private_access(facts).is_none() {
        return Ok(Vec::new());
    }
    let cluster = facts.id.to_string();
    let found = list(resource(), &facts.namespace, ctx).await?;
    let own = found
        .into_iter()
        .filter(|it| owner(&it.metadata).is_none_or(|owner| owner == cluster));
    // One that cannot be read has no conditions.
    let read = own.filter_map(|it| serde_json::from_value(json!(it)).ok());
    Ok(read.collect())
}
