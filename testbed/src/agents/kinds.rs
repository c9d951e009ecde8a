//! Stand-ins for the kinds of platform Agent: they accept any object.
//!
//! The real definitions come with programs that cannot be had here. What these have in common with them are the names,
//! the versions, and the label by which Cluster API knows which contract the provider's kinds keep to.

use serde_json::{Value, json};

use crate::crds;

/// A kind: its group, version, name and plural.
type Kind = (&'static str, &'static str, &'static str, &'static str);

/// The provider's group.
pub const PROVIDER: &str = "capi-provider.agent-install.openshift.io";

const OF_PROVIDER: [Kind; 3] = [
    (PROVIDER, "v1beta1", "AgentCluster", "agentclusters"),
    (PROVIDER, "v1beta1", "AgentMachine", "agentmachines"),
    (
        PROVIDER,
        "v1beta1",
        "AgentMachineTemplate",
        "agentmachinetemplates",
    ),
];
const OF_SERVICE: [Kind; 3] = [
    ("agent-install.openshift.io", "v1beta1", "Agent", "agents"),
    (
        "hive.openshift.io",
        "v1",
        "ClusterDeployment",
        "clusterdeployments",
    ),
    (
        "extensions.hive.openshift.io",
        "v1beta1",
        "AgentClusterInstall",
        "agentclusterinstalls",
    ),
];

/// The definitions of all of them.
pub fn definitions() -> Vec<Value> {
    let mut all = of_provider();
    all.extend(OF_SERVICE.map(definition));
    all
}

/// The definitions of the provider's kinds.
pub fn of_provider() -> Vec<Value> {
    let with_contract = |kind| {
        let mut crd = definition(kind);
        crd["metadata"]["labels"] = json!({ "cluster.x-k8s.io/v1beta1": "v1beta1" });
        crd
    };
    OF_PROVIDER.map(with_contract).to_vec()
}

fn definition((group, version, kind, plural): Kind) -> Value {
    crds::of_any_object(group, version, kind, plural, "Namespaced")
}
