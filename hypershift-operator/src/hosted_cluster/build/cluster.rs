//! The Cluster API Cluster and its infrastructure cluster object.

use api::group::MANAGED_BY;
use kube::Resource as _;
use serde_json::json;

use super::Desired;
use crate::facts::Facts;
use crate::names;
use crate::platform::{ClusterIs, infrastructure};

/// Both defaults, if possible.
pub(super) fn chain(facts: &Facts) -> Vec<Desired> {
    if !facts.has_machine_management() {
        return Vec::new();
    }
    let Some(infrastructure) = infrastructure_cluster(facts) else {
        return Vec::new();
    };
    let cluster = cluster(facts, &infrastructure);
    vec![infrastructure, cluster]
}

/// The Cluster alone, paused or not, if one is desired.
pub(crate) fn capi_cluster(facts: &Facts, paused: bool) -> Option<Desired> {
    let mut cluster = cluster(facts, &infrastructure_cluster(facts)?);
    if paused {
        cluster.body["spec"]["paused"] = json!(true);
    }
    Some(super::with_owner(facts, cluster))
}

/// The infrastructure object. Most providers ignore it: nothing has to be created, so it is ready.
fn infrastructure_cluster(facts: &Facts) -> Option<Desired> {
    let platform = infrastructure(facts.cluster.spec.platform.type_);
    match platform.cluster(facts) {
        ClusterIs::Desired(cluster) if !platform.is_external() => Some(*cluster),
        ClusterIs::Desired(cluster) => {
            let cluster = cluster.annotated(MANAGED_BY, "external");
            Some(cluster.with_status(json!({ "ready": true })))
        }
        ClusterIs::Later | ClusterIs::Absent => None,
    }
}

fn cluster(facts: &Facts, infrastructure: &Desired) -> Desired {
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
    Desired::of(
        facts.capi.cluster(),
        &facts.namespace,
        facts.infra_id(),
        fields,
    )
    .annotated(names::CLUSTER, &facts.id.to_string())
}
