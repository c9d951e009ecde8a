//! The private links of a cluster.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::context::Context;
use crate::control_plane_namespace::owner;
use crate::error::Error;
use crate::facts::Facts;
use crate::hosted_cluster::deletion::list;
use crate::hosted_cluster::validate::has_private_links;
use crate::private_link::links;

/// The conditions of each one that is the cluster's. Clusters without private links have none.
pub(super) async fn of_cluster(facts: &Facts, ctx: &Context) -> Result<Vec<Vec<Condition>>, Error> {
    if !has_private_links(facts) {
        return Ok(Vec::new());
    }
    let cluster = facts.id.to_string();
    let resource = links(facts.cluster.spec.platform.type_).resource;
    let found = list(resource, &facts.namespace, ctx).await?;
    let own = found
        .into_iter()
        .filter(|it| owner(&it.metadata).is_none_or(|owner| owner == cluster));
    // What cannot be read are no conditions.
    let read = own.map(|mut it| {
        let conditions = it.data["status"]["conditions"].take();
        serde_json::from_value(conditions).unwrap_or_default()
    });
    Ok(read.collect())
}
