//! The subnets of NodePools whose machines get public addresses on AWS.

use std::collections::BTreeSet;

use api::annotations::cluster::AWS_MACHINE_PUBLIC_IPS;
use api::hypershift::v1beta1::NodePool;
use api::hypershift::v1beta1::platform::PlatformType;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams};

use crate::context::Context;
use crate::error::Error;
use crate::facts::Facts;

/// Their IDs, if the annotation asks for public addresses. Those of NodePools that are being deleted count: their machines
/// are still there.
pub(super) async fn of_pools(facts: &Facts, ctx: &Context) -> Result<BTreeSet<String>, Error> {
    let is_aws = facts.cluster.spec.platform.type_ == PlatformType::Aws;
    if !is_aws || !AWS_MACHINE_PUBLIC_IPS.is_true(facts.annotations()) {
        return Ok(BTreeSet::new());
    }
    let namespace = &facts.id.namespace;
    let resource = ApiResource::erase::<NodePool>(&());
    let api: Api<DynamicObject> = Api::namespaced_with(ctx.client.clone(), namespace, &resource);
    let listed = api.list(&ListParams::default()).await;
    let listed = listed.map_err(Error::list(format!("NodePools in {namespace}")))?;
    let pools = listed.items.iter();
    let pools = pools.filter(|pool| pool.data["spec"]["clusterName"] == facts.id.name.as_str());
    let subnets = pools.filter_map(|pool| {
        let id = pool.data["spec"]["platform"]["aws"]["subnet"]["id"].as_str()?;
        (!id.is_empty()).then(|| id.to_owned())
    });
    Ok(subnets.collect())
}
