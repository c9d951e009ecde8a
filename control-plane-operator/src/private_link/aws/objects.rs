//! The objects of private links: AWSEndpointServices, and Services for names outside of the private zone. Pure.

use api::hypershift::v1beta1::platform::aws::AwsEndpointAccess;
use api::hypershift::v1beta1::{AwsEndpointService, HostedControlPlane};
use control_plane_component::Objects;
use control_plane_component::render::owner;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::plan::{API_SERVER, ROUTER};
use crate::private_link::externals;

/// The Services that are reached by private links; an AWSEndpointService has the name of its Service.
pub(super) const LINKS: [&str; 2] = [API_SERVER, ROUTER];
/// The finalizer of this controller: the endpoint goes first.
pub(super) const FINALIZER: &str = "hypershift.openshift.io/control-plane-operator-finalizer";
/// Label of Services for names outside of the private zone.
pub(super) const EXTERNAL: &str = "hypershift.openshift.io/external-private-service";

/// The name of the load balancer of a Service, which is not being deleted.
pub(super) fn balancer(objects: &Objects, service: &str) -> Option<String> {
    let service = objects.get("", "Service", service)?;
    if service["metadata"]["deletionTimestamp"].is_string() {
        return None;
    }
    let host = service["status"]["loadBalancer"]["ingress"][0]["hostname"].as_str()?;
    Some(balancer_name(host).to_owned())
}

/// The name of a load balancer in its DNS name: the first label, without what AWS adds.
fn balancer_name(host: &str) -> &str {
    let label = host.split('.').next().unwrap_or_default();
    label.rsplit_once('-').map_or(label, |(name, _)| name)
}

/// The AWSEndpointService of a load balancer. Its subnets are chosen by the hypershift-operator.
pub(super) fn link(hcp: &HostedControlPlane, name: &str, balancer: &str) -> Value {
    let aws = hcp.spec.platform.aws.as_ref();
    let tags = aws.iter().flat_map(|it| &it.resource_tags);
    let tags: Vec<_> = tags
        .map(|it| json!({ "key": it.key, "value": it.value }))
        .collect();
    json!({
        "metadata": {
            "namespace": hcp.metadata.namespace,
            "name": name,
            "finalizers": [FINALIZER],
            "ownerReferences": [owner(hcp)],
        },
        "spec": { "networkLoadBalancerName": balancer, "resourceTags": tags },
    })
}

/// Whether an AWSEndpointService has all of this. Pure.
pub(super) fn has(live: &AwsEndpointService, desired: &Value) -> bool {
    let found = json!(live);
    let spec = ["networkLoadBalancerName", "resourceTags"];
    let empty = json!([]);
    let is_same = |field: &&str| match (&found["spec"][*field], &desired["spec"][*field]) {
        (Value::Null, wanted) => *wanted == empty,
        (found, wanted) => found == wanted,
    };
    let owner = desired["metadata"]["ownerReferences"][0]["uid"].as_str();
    let is_owned = live
        .owner_references()
        .iter()
        .any(|it| Some(it.uid.as_str()) == owner);
    let has_finalizer = live.finalizers().iter().any(|it| it == FINALIZER);
    is_owned && has_finalizer && spec.iter().all(is_same)
}

/// The Services for names outside of the private zone: where there is no public router, the published names are private.
pub(super) fn externals(hcp: &HostedControlPlane, host: &str) -> Vec<Value> {
    let aws = hcp.spec.platform.aws.as_ref();
    if aws.is_none_or(|it| it.endpoint_access != AwsEndpointAccess::Private) {
        return Vec::new();
    }
    externals::externals(hcp, EXTERNAL, host)
}
