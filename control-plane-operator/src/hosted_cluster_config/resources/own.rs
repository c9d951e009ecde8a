//! Objects that are this project's own: without a release in the hosted cluster, nodes join with them.

use serde_json::{Value, json};

use super::super::NodeClients;
use super::desired::Object;

/// Group of the bootstrap account.
const BOOTSTRAPPERS: &str = "system:serviceaccounts:openshift-machine-config-operator";
/// RBAC API group.
const RBAC: &str = "rbac.authorization.k8s.io";
/// The user of the API server's client certificate for kubelets.
const API_SERVER: &str = "system:kube-apiserver";
/// Namespaces that the release brings later. Objects are copied there before.
const NAMESPACES: [&str; 4] = [
    "openshift",
    "openshift-config",
    "openshift-config-managed",
    "openshift-machine-config-operator",
];

pub(super) fn objects(clients: NodeClients) -> Vec<Object> {
    let mut objects: Vec<_> = NAMESPACES.into_iter().map(namespace).collect();
    // Kubernetes creates the role without a binding. Without it kubelets refuse `kubectl logs` and `kubectl exec`.
    objects.push(binding(
        "system:kube-apiserver-to-kubelet",
        "system:kubelet-api-admin",
        &json!({ "apiGroup": RBAC, "kind": "User", "name": API_SERVER }),
    ));
    // The built-in controller approves requests of this subject.
    match clients {
        NodeClients::Everybody => objects.push(binding(
            "csr-approver",
            "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
            &json!({ "apiGroup": RBAC, "kind": "Group", "name": BOOTSTRAPPERS }),
        )),
        NodeClients::Machines => {}
    }
    objects
}

fn namespace(name: &str) -> Object {
    Object::merge(json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": { "name": name },
    }))
}

fn binding(name: &str, role: &str, subject: &Value) -> Object {
    Object::enforce(json!({
        "apiVersion": format!("{RBAC}/v1"),
        "kind": "ClusterRoleBinding",
        "metadata": { "name": name },
        "roleRef": { "apiGroup": RBAC, "kind": "ClusterRole", "name": role },
        "subjects": [subject],
    }))
}
