//! The Cluster of Cluster API, and the object that stands for it on its infrastructure.

use api::group::MANAGED_BY;
use kube::Resource as _;
use serde_json::json;

use super::Wanted;
use crate::hosted_cluster::facts::Facts;
use crate::hosted_cluster::names;
use crate::platform::{ClusterIs, infrastructure};

/// Both, as far as they can be made.
pub(super) fn chain(facts: &Facts) -> Vec<Wanted> {
    if !facts.has_machine_management() {
        return Vec::new();
    }
    let Some(infrastructure) = infrastructure_cluster(facts) else {
        return Vec::new();
    };
    let cluster = cluster(facts, &infrastructure);
    vec![infrastructure, cluster]
}

/// The Cluster alone, paused or not, if there is to be one.
pub(crate) fn capi_cluster(facts: &Facts, paused: bool) -> Option<Wanted> {
    let mut cluster = cluster(facts, &infrastructure_cluster(facts)?);
    if paused {
        cluster.body["spec"]["paused"] = json!(true);
    }
    Some(super::marked(facts, cluster))
}

/// The object on the infrastructure. Its provider leaves it alone: there is nothing to be made for it, so it is ready.
fn infrastructure_cluster(facts: &Facts) -> Option<Wanted> {
    let platform = infrastructure(facts.cluster.spec.platform.type_).ok()?;
    match platform.cluster(facts) {
        ClusterIs::Wanted(cluster) => {
            let cluster = cluster.annotated(MANAGED_BY, "external");
            Some(cluster.with_status(json!({ "ready": true })))
        }
        ClusterIs::Later | ClusterIs::Absent => None,
    }
}

fn cluster(facts: &Facts, infrastructure: &Wanted) -> Wanted {
    use api::hypershift::v1beta1::HostedControlPlane;
    let fields = json!({ "spec": {
        "controlPlaneRef": {
            "apiGroup": HostedControlPlane::group(&()),
            "kind": HostedControlPlane::kind(&()),
            "name": facts.id.name,
        },
        "infrastructureRef": {
            "apiGroup": infrastructure.resource.group,
            "kind": infrastructure.resource.kind,
            "name": infrastructure.name(),
        },
    }});
    Wanted::of(
        facts.capi.cluster(),
        &facts.namespace,
        facts.infra_id(),
        fields,
    )
    .annotated(names::CLUSTER, &facts.id.to_string())
}
