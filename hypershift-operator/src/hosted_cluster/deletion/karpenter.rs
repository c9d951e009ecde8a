//! When the finalizer of Karpenter on a HostedControlPlane is given up: no controller is there to remove it, or can.

use k8s_openapi::api::apps::v1::Deployment;

use crate::facts::Facts;
use crate::facts::auto_node::karpenter;

/// Whether no controller will remove it: the cluster has no Karpenter any more, or no API server by which its machines are
/// found. What remains of them in the cloud is the user's to delete.
pub(super) fn is_given_up(facts: &Facts, api_server: Option<&Deployment>) -> bool {
    karpenter(&facts.cluster).is_none() || !api_server.is_some_and(is_available)
}

fn is_available(deployment: &Deployment) -> bool {
    let status = deployment.status.as_ref();
    let conditions = status.and_then(|it| it.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    let is_true = conditions.any(|it| it.type_ == "Available" && it.status == "True");
    is_true && deployment.metadata.deletion_timestamp.is_none()
}

#[cfg(test)]
mod tests {
    use api::group::CapiTypes;
    use serde_json::json;

    use super::*;
    use crate::facts::fixture;

    #[test]
    fn the_finalizer_is_given_up_without_karpenter_or_api_server() {
        let available = |status: &str| {
            let conditions = json!([{ "type": "Available", "status": status }]);
            let deployment = json!({ "metadata": {}, "status": { "conditions": conditions } });
            serde_json::from_value::<Deployment>(deployment).unwrap()
        };
        for (is_on, api_server, expected) in [
            (true, Some(available("True")), false),
            (true, Some(available("False")), true),
            (true, Some(Deployment::default()), true),
            (true, None, true),
            (false, Some(available("True")), true),
        ] {
            let mut cluster = fixture::hosted_cluster("aws");
            if is_on {
                fixture::with_auto_node(&mut cluster);
            }
            let facts = fixture::facts(cluster, CapiTypes::Private);
            let found = is_given_up(&facts, api_server.as_ref());
            assert_eq!(found, expected, "{is_on} {api_server:?}");
        }
    }
}
