//! Reads what an AWSEndpointService depends on beside its HostedCluster: the NodePools, the Service.

use api::hypershift::v1beta1::platform::aws::AwsPlatformSpec;
use api::hypershift::v1beta1::{AwsEndpointService, HostedControlPlane, NodePool};
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams};
use kube::{Api, ResourceExt as _};
use serde_json::Value;

use super::plan::{self, Desired, Problem, Target};
use crate::cluster_ref::Id;
use crate::context::Context;
use crate::error::Error;
use crate::names;
use crate::private_link::inputs::Owner;

/// Prefix of a field that names a Secret in place of a role.
const ROLE_PREFIX: &str = "arn:";

/// The AWSEndpointService, as far as it can be relied on.
pub(super) async fn target(link: &AwsEndpointService, ctx: &Context) -> Result<Target, Error> {
    let (namespace, name) = (link.namespace().unwrap_or_default(), link.name_any());
    let service = match plan::service_of(&name, &namespace) {
        Some(service) => ctx.get::<Service>(&namespace, service).await?,
        None => None,
    };
    let host = service.and_then(|it| {
        let balancer = it.status?.load_balancer?;
        balancer.ingress?.into_iter().next()?.hostname
    });
    let status = link.status.as_ref();
    let balancer = link.spec.network_load_balancer_name.clone();
    Ok(Target {
        uid: link.uid().unwrap_or_default(),
        recorded: status.and_then(|it| it.endpoint_service_name.clone()),
        balancer: host.map(|host| (balancer, host)),
        successor: None,
    })
}

/// The AWSEndpointService that replaces one of early versions of HyperShift, if the cluster has both. One that does not name
/// the cluster has not been taken over by this operator yet.
pub(super) async fn successor(
    found: &DynamicObject,
    owner: &Owner,
    ctx: &Context,
) -> Result<Option<AwsEndpointService>, Error> {
    let namespace = found.namespace().unwrap_or_default();
    if !plan::is_legacy(&found.name_any(), &namespace) {
        return Ok(None);
    }
    let successor = ctx
        .get::<AwsEndpointService>(&namespace, plan::ROUTER)
        .await?;
    let cluster = owner.id.to_string();
    Ok(successor.filter(|it| {
        let is_its = it.annotations().get(names::CLUSTER) == Some(&cluster);
        is_its && it.metadata.deletion_timestamp.is_none()
    }))
}

/// What is to be in AWS for an AWSEndpointService.
pub(super) async fn desired(
    link: &AwsEndpointService,
    aws: &AwsPlatformSpec,
    owner: &Owner,
    infrastructure: Option<&str>,
    ctx: &Context,
) -> Result<Desired, Error> {
    let mut aws = aws.clone();
    let role = &mut aws.roles_ref.control_plane_operator_arn;
    if !role.starts_with(ROLE_PREFIX) {
        // The control plane has the role that the Secret names.
        let namespace = owner.id.control_plane_namespace();
        let found = ctx
            .get::<HostedControlPlane>(&namespace, &owner.id.name)
            .await?;
        let found = found.and_then(|it| it.spec.platform.aws);
        *role = found.map_or_else(String::new, |it| it.roles_ref.control_plane_operator_arn);
    }
    let target = target(link, ctx).await?;
    let tags = link.spec.resource_tags.iter();
    let tags = tags.map(|tag| (tag.key.as_str(), tag.value.as_str()));
    Ok(Desired {
        tags: plan::tags(tags, infrastructure, &target.uid),
        principals: plan::principals(&aws),
        target,
    })
}

/// The subnets of the cluster's NodePools, and those of Karpenter.
pub(super) async fn subnets(
    owner: &Owner,
    ctx: &Context,
) -> Result<Result<Vec<String>, Problem>, Error> {
    let resource = ApiResource::erase::<NodePool>(&());
    let Id { namespace, name } = &owner.id;
    let api: Api<DynamicObject> = Api::namespaced_with(ctx.client.clone(), namespace, &resource);
    let listed = api.list(&ListParams::default()).await;
    let listed = listed.map_err(Error::list(format!("NodePools in {namespace}")))?;
    let pools = listed.items.iter().filter(|pool| {
        pool.metadata.deletion_timestamp.is_none()
            && pool.data["spec"]["clusterName"] == name.as_str()
    });
    let subnets = pools.filter_map(|pool| {
        let id = pool.data["spec"]["platform"]["aws"]["subnet"]["id"].as_str();
        id.map(str::to_owned)
    });
    let control_plane = owner.id.control_plane_namespace();
    let karpenter = ctx
        .get::<ConfigMap>(&control_plane, names::KARPENTER_SUBNETS)
        .await?;
    let is_its = |map: &ConfigMap| {
        let manager = map.labels().get(names::MANAGED_BY);
        manager.is_some_and(|it| it == names::KARPENTER_MANAGER)
    };
    let karpenter = karpenter.filter(is_its);
    let text = karpenter.and_then(|it| it.data?.remove(names::KARPENTER_SUBNETS_KEY));
    let further = plan::karpenter_subnets(text.as_deref().unwrap_or("[]"));
    Ok(plan::subnets(subnets.chain(further)))
}

/// The name of the management cluster's infrastructure, on OpenShift.
pub(super) async fn infrastructure(ctx: &Context) -> Result<Option<String>, Error> {
    let kind = GroupVersionKind::gvk("config.openshift.io", "v1", "Infrastructure");
    let resource = ApiResource::from_gvk(&kind);
    let api: Api<DynamicObject> = Api::all_with(ctx.client.clone(), &resource);
    match api.get_opt("cluster").await {
        Ok(found) => {
            let name = found
                .as_ref()
                .map(|it| &it.data["status"]["infrastructureName"]);
            Ok(name.and_then(Value::as_str).map(str::to_owned))
        }
        // Without the permission, there is one tag less.
        Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404) => Ok(None),
        Err(source) => Err(Error::Read {
            what: "Infrastructure cluster".to_owned(),
            source,
        }),
    }
}
