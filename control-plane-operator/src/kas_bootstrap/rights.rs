//! The permissions that only an administrator can grant.

use serde_json::{Value, json};

use super::manifests::Manifest;

/// Each binding and its account. What renderers leave may be of any kind and may give rights itself, and the operator
/// that configures the hosted cluster gives rights to every other account of it: both have to have them all.
const ADMINISTRATORS: [(&str, &str); 2] = [
    (
        "kas-bootstrap-container-cluster-admin",
        "system:kas-bootstrap-container",
    ),
    ("hcco-cluster-admin", "system:hosted-cluster-config"),
];

/// The objects that give them.
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
