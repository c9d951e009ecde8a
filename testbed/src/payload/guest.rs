//! Manifests that the cluster-version-operator applies in a hosted cluster: what components of the control plane wait for
//! there, and what only a release brings.

use serde_json::{Value, json};

use crate::images::File;

/// Where a release image has the manifests of its cluster-version-operator, which that applies before it starts.
const DIRECTORY: &str = "/manifests";
const RBAC: &str = "rbac.authorization.k8s.io";
/// Namespaces of operators that run in the control plane.
const NAMESPACES: [&str; 6] = [
    "openshift-cloud-credential-operator",
    "openshift-cluster-version",
    "openshift-dns-operator",
    "openshift-image-registry",
    "openshift-ingress-operator",
    NETWORK_OPERATOR.0,
];
/// Namespace and name of service accounts.
const NETWORK_OPERATOR: (&str, &str) = ("openshift-network-operator", "cluster-network-operator");
const DNS_OPERATOR: (&str, &str) = ("openshift-dns-operator", "dns-operator");
const CREDENTIAL_OPERATOR: (&str, &str) = (
    "openshift-cloud-credential-operator",
    "cloud-credential-operator",
);

/// The files.
pub(super) fn files() -> [File; 1] {
    [file("0000_20_operators.yaml", &operators())]
}

fn file(name: &str, objects: &[Value]) -> File {
    // JSON is YAML.
    let text: Vec<String> = objects.iter().map(Value::to_string).collect();
    File::text(format!("{DIRECTORY}/{name}"), text.join("\n---\n"))
}

/// The namespaces of operators, and the permissions of those that sign in as a service account.
fn operators() -> Vec<Value> {
    let namespaces = NAMESPACES.map(
        |name| json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } }),
    );
    let mut all = Vec::from(namespaces);
    all.push(binding(NETWORK_OPERATOR, "cluster-admin"));
    for (account, rule) in [
        (DNS_OPERATOR, reads("", "pods")),
        (
            CREDENTIAL_OPERATOR,
            reads("config.openshift.io", "infrastructures"),
        ),
    ] {
        let (_, name) = account;
        all.push(json!({
            "apiVersion": format!("{RBAC}/v1"),
            "kind": "ClusterRole",
            "metadata": { "name": name },
            "rules": [rule],
        }));
        all.push(binding(account, name));
    }
    all
}

fn reads(group: &str, resource: &str) -> Value {
    json!({ "apiGroups": [group], "resources": [resource], "verbs": ["get", "list", "watch"] })
}

/// A ClusterRoleBinding with the name of the service account.
fn binding((namespace, name): (&str, &str), role: &str) -> Value {
    json!({
        "apiVersion": format!("{RBAC}/v1"),
        "kind": "ClusterRoleBinding",
        "metadata": { "name": name },
        "roleRef": { "apiGroup": RBAC, "kind": "ClusterRole", "name": role },
        "subjects": [{ "kind": "ServiceAccount", "namespace": namespace, "name": name }],
    })
}
