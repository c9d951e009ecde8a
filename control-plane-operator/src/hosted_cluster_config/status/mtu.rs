//! The MTU of a hosted cluster whose nodes are virtual machines: their packets are encapsulated twice, once by the hosted
//! cluster and once by the infrastructure cluster.

use std::time::Duration;

use api::conditions::{ClusterCondition, Status};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use support::reconcile::is_missing;
use tokio::time::timeout;

use super::super::control_plane::DesiredCondition;
use super::super::error::Error;

/// Timeout of the request.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The MTU that infrastructure clusters should have.
const INFRASTRUCTURE: u64 = 9000;
/// What both encapsulations take of it.
const OVERHEAD: u64 = 200;
const WHAT: &str = "get Network cluster of the network operator";

/// The MTU that the network operator has, if it matters on this platform.
pub(super) async fn find(
    guest: &kube::Client,
    control_plane: &DynamicObject,
) -> Result<Option<u64>, Error> {
    let spec = &control_plane.data["spec"];
    let is_affected = spec["platform"]["type"] == "KubeVirt"
        && spec["networking"]["networkType"] == "OVNKubernetes";
    if !is_affected {
        return Ok(None);
    }
    let kind = GroupVersionKind::gvk("operator.openshift.io", "v1", "Network");
    let resource = ApiResource::from_gvk_with_plural(&kind, "networks");
    let api: Api<DynamicObject> = Api::all_with(guest.clone(), &resource);
    let network = match timeout(TIMEOUT, api.get_opt("cluster")).await {
        Err(_) => return Err(Error::waiting(format!("the answer to {WHAT}"))),
        Ok(Err(error)) if is_missing(&error) => None,
        Ok(found) => found.map_err(Error::client(WHAT))?,
    };
    let mtu = network.and_then(|it| {
        let config = &it.data["spec"]["defaultNetwork"]["ovnKubernetesConfig"];
        config["mtu"].as_u64()
    });
    Ok(mtu.filter(|mtu| *mtu > 0))
}

/// Whether packets of this size fit into those of the infrastructure cluster.
pub(super) fn condition(mtu: u64) -> DesiredCondition {
    let type_ = ClusterCondition::ValidKubeVirtInfraNetworkMtu;
    let least = INFRASTRUCTURE - OVERHEAD;
    if mtu >= least {
        return DesiredCondition {
            type_,
            status: Status::True,
            reason: "AsExpected",
            message: format!("The network of the hosted cluster has MTU {mtu}"),
        };
    }
    DesiredCondition {
        type_,
        status: Status::False,
        reason: "KubeVirtSuboptimalMTUDetected",
        message: format!(
            "The network of the hosted cluster has MTU {mtu}, and packets are encapsulated twice. For better performance set the \
             MTU of the infrastructure cluster to {INFRASTRUCTURE} or more, so that the hosted cluster has {least} or more"
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use support::testing::{Answer, Expect, Scenario};

    use super::*;

    const NETWORK: &str = "/apis/operator.openshift.io/v1/networks/cluster";

    fn control_plane(platform: &str, network: &str) -> DynamicObject {
        let object = json!({
            "apiVersion": "hypershift.openshift.io/v1beta1", "kind": "HostedControlPlane",
            "metadata": { "name": "b", "namespace": "a" },
            "spec": { "platform": { "type": platform }, "networking": { "networkType": network } },
        });
        serde_json::from_value(object).unwrap()
    }

    #[tokio::test]
    async fn only_a_given_mtu_of_ovn_on_kubevirt_matters() {
        let network = |mtu: Value| {
            let config = json!({ "ovnKubernetesConfig": { "mtu": mtu } });
            Answer::ok(&json!({
                "apiVersion": "operator.openshift.io/v1", "kind": "Network",
                "metadata": { "name": "cluster" },
                "spec": { "defaultNetwork": config },
            }))
        };
        let missing = Answer::error(404, "NotFound");
        for (platform, type_, answer, expected) in [
            ("AWS", "OVNKubernetes", None, None),
            ("KubeVirt", "Other", None, None),
            ("KubeVirt", "OVNKubernetes", Some(missing), None),
            (
                "KubeVirt",
                "OVNKubernetes",
                Some(network(Value::Null)),
                None,
            ),
            ("KubeVirt", "OVNKubernetes", Some(network(json!(0))), None),
            (
                "KubeVirt",
                "OVNKubernetes",
                Some(network(json!(1300))),
                Some(1300),
            ),
        ] {
            let calls = answer.into_iter();
            let calls: Vec<_> = calls.map(|it| Expect::get(NETWORK).answer(it)).collect();
            let guest = Scenario::new(calls);
            let found = find(&guest.client(), &control_plane(platform, type_)).await;
            assert_eq!(found.unwrap(), expected, "{platform} {type_}");
            guest.finish();
        }
    }

    #[test]
    fn packets_must_fit_into_those_of_the_infrastructure_cluster() {
        for (mtu, status, reason) in [
            (8800, Status::True, "AsExpected"),
            (8799, Status::False, "KubeVirtSuboptimalMTUDetected"),
            (1300, Status::False, "KubeVirtSuboptimalMTUDetected"),
        ] {
            let found = condition(mtu);
            assert_eq!((found.status, found.reason), (status, reason), "{mtu}");
        }
    }
}
