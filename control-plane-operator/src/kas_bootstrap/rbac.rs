//! RBAC objects that only an administrator can create.

use serde_json::{Value, json};

use super::manifests::Manifest;

/// Each ClusterRoleBinding and its user. Both users need cluster-admin, because they create RBAC objects with arbitrary
/// permissions.
const ADMINISTRATORS: [(&str, &str); 2] = [
    (
        "kas-bootstrap-container-cluster-admin",
        "system:kas-bootstrap-container",
    ),
    ("hcco-cluster-admin", "system:hosted-cluster-config"),
];

/// Returns the `ClusterRoleBindings`.
pub(super) fn manifests() -> Vec<Manifest> {
    let bindings = ADMINISTRATORS.map(|(name, user)| Manifest::from(binding(name, user)));
    bindings.into()
}

fn binding(name: &str, user: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": { "name": name },
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "cluster-admin",
        },
        "subjects": [{
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "User",
            "name": user,
        }],
    })
}
