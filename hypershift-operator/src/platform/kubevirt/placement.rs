//! How the virtual machines of a pool are distributed over hosts.

use api::annotations::node_pool::{
    KUBEVIRT_TOPOLOGY_SPREAD_CONSTRAINTS, PLATFORM_MACHINE_TEMPLATE,
};
use api::hypershift::v1beta1::node_pool::NodePool;
use serde_json::{Value, json};

use super::machines::POOL_LABEL;
use crate::names::node_pool as names;

const HOST: &str = "kubernetes.io/hostname";

/// Whether machines are spread evenly over hosts, which other machines only avoid if they can. It is recorded in the pool:
/// to begin with it would replace machines, so only pools do that are new, or whose machines another release replaces.
pub(crate) fn is_spread(pool: &NodePool, version: &str) -> bool {
    let annotations = pool.metadata.annotations.as_ref();
    let has = |key: &str| annotations.is_some_and(|it| it.contains_key(key));
    let current = pool.status.as_ref().and_then(|it| it.version.as_deref());
    let is_updating = current.is_some_and(|it| !it.is_empty() && it != version);
    has(KUBEVIRT_TOPOLOGY_SPREAD_CONSTRAINTS.key())
        || !has(PLATFORM_MACHINE_TEMPLATE.key())
        || is_updating
}

/// Distributes the machines of a pool.
pub(super) fn place(spec: &mut Value, pool: &NodePool, is_spread: bool) {
    let machines = json!({ "matchExpressions": [
        { "key": POOL_LABEL, "operator": "In", "values": [names::of(pool)] },
    ] });
    if is_spread {
        spec["topologySpreadConstraints"] = json!([{
            "labelSelector": machines,
            "maxSkew": 1,
            "topologyKey": HOST,
            "whenUnsatisfiable": "ScheduleAnyway",
        }]);
        return;
    }
    let term = json!({ "labelSelector": machines, "topologyKey": HOST });
    spec["affinity"] = json!({ "podAntiAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 100, "podAffinityTerm": term }],
    } });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(annotations: &Value, version: &str) -> NodePool {
        let pool = json!({
            "apiVersion": "hypershift.openshift.io/v1beta1",
            "kind": "NodePool",
            "metadata": { "namespace": "clusters", "name": "workers", "annotations": annotations },
            "spec": {
                "clusterName": "one",
                "release": { "image": "quay.example.com/release:4.20" },
                "management": { "upgradeType": "Replace" },
                "platform": { "type": "KubeVirt" },
            },
            "status": { "version": version },
        });
        serde_json::from_value(pool).unwrap()
    }

    #[test]
    fn machines_that_run_are_not_replaced_to_be_spread() {
        let spread = KUBEVIRT_TOPOLOGY_SPREAD_CONSTRAINTS.key();
        let template = PLATFORM_MACHINE_TEMPLATE.key();
        for (name, annotations, version, expected) in [
            ("new", json!({}), "", true),
            (
                "running",
                json!({ template: "workers-0a1b2c3d" }),
                "4.20.1",
                false,
            ),
            (
                "first machines",
                json!({ template: "workers-0a1b2c3d" }),
                "",
                false,
            ),
            (
                "updating",
                json!({ template: "workers-0a1b2c3d" }),
                "4.19.9",
                true,
            ),
            (
                "recorded",
                json!({ template: "workers-0a1b2c3d", spread: "true" }),
                "4.20.1",
                true,
            ),
        ] {
            let pool = pool(&annotations, version);
            assert_eq!(is_spread(&pool, "4.20.1"), expected, "{name}");
        }
    }
}
