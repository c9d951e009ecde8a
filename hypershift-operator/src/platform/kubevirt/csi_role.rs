//! What the storage driver of a control plane may do outside of its namespace: read the volumes of virtual machines, which
//! are cluster-scoped. Its other permissions are in a Role that the control-plane-operator creates.

use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use serde_json::json;

use crate::desired::Desired;
use crate::facts::Facts;
use crate::names;

/// The service account of the driver.
const ACCOUNT: &str = "kubevirt-csi";

/// The role and its binding.
pub(super) fn desired(facts: &Facts) -> Vec<Desired> {
    let name = names::kubevirt_csi_role(&facts.namespace);
    let rules = json!({ "rules": [{
        "apiGroups": [""], "resources": ["persistentvolumes"], "verbs": ["get"],
    }]});
    let binding = json!({
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name },
        "subjects": [{ "kind": "ServiceAccount", "name": ACCOUNT, "namespace": facts.namespace }],
    });
    [
        Desired::new::<ClusterRole>("", &name, rules),
        Desired::new::<ClusterRoleBinding>("", &name, binding),
    ]
    .map(|it| it.labelled_with_owner(&facts.id))
    .into()
}
