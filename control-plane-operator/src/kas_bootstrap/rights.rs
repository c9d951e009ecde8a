//! The rights that nobody but an administrator can give.

use serde_json::{Value, json};

use super::manifests::Manifest;

/// This program's account.
const BOOTSTRAP: &str = "system:kas-bootstrap-container";
/// The account of the operator that configures the hosted cluster.
const CONFIG_OPERATOR: &str = "system:hosted-cluster-config";

/// The objects that give them.
pub(super) fn manifests() -> Vec<Manifest> {
    let objects = [
        bootstrap_role(),
        binding(
            "hypershift-kas-bootstrap",
            "hypershift-kas-bootstrap",
            BOOTSTRAP,
        ),
        // It gives rights to every other account of the hosted cluster, so it has to have them all.
        binding(
            "hosted-cluster-config-operator",
            "cluster-admin",
            CONFIG_OPERATOR,
        ),
    ];
    objects.into_iter().map(Manifest::from).collect()
}

/// Definitions, and the configuration of OpenShift: what the payload's renderers make.
fn bootstrap_role() -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": { "name": "hypershift-kas-bootstrap" },
        "rules": [
            {
                "apiGroups": ["apiextensions.k8s.io"],
                "resources": ["customresourcedefinitions"],
                "verbs": ["get", "list", "watch", "create", "patch", "update"],
            },
            {
                "apiGroups": ["config.openshift.io", "operator.openshift.io"],
                "resources": ["*"],
                "verbs": ["get", "list", "watch", "create", "patch", "update"],
            },
            {
                "apiGroups": [""],
                "resources": ["namespaces"],
                "verbs": ["get", "create", "patch"],
            },
        ],
    })
}

fn binding(name: &str, role: &str, user: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": { "name": name },
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": role,
        },
        "subjects": [{
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "User",
            "name": user,
        }],
    })
}
