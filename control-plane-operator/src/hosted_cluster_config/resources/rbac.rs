//! RBAC of the hosted cluster: for joining nodes, certificate renewal, and the API server's access to kubelets.
//!
//! A new machine uses the bootstrap kubeconfig with the node-bootstrapper account, which may only request a
//! certificate.

use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, RoleRef, Subject};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::super::NodeClients;

/// Namespace of the bootstrap account.
pub(in crate::hosted_cluster_config) const BOOTSTRAPPER_NAMESPACE: &str =
    "openshift-machine-config-operator";
/// Name of the bootstrap account.
pub(in crate::hosted_cluster_config) const BOOTSTRAPPER: &str = "node-bootstrapper";
/// Group of the bootstrap account.
const BOOTSTRAPPERS: &str = "system:serviceaccounts:openshift-machine-config-operator";
/// The group of nodes.
const NODES: &str = "system:nodes";
/// RBAC API group.
const RBAC: &str = "rbac.authorization.k8s.io";
/// The user of the API server's client certificate for kubelets.
const API_SERVER: &str = "system:kube-apiserver";
/// User with which Prometheus scrapes metrics of the control plane.
const METRICS_ACCOUNT: &str = "system:serviceaccount:hypershift:prometheus";

/// Role for kubelet resource metrics, which `system:monitoring` does not include.
const METRICS_ROLE: &str = "hypershift-metrics-resources-reader";

/// `ClusterRoles` that are not built in.
pub(super) fn roles() -> Vec<ClusterRole> {
    vec![ClusterRole {
        metadata: named(METRICS_ROLE),
        rules: Some(vec![PolicyRule {
            non_resource_urls: Some(vec!["/metrics/resources".to_owned()]),
            verbs: vec!["get".to_owned()],
            ..PolicyRule::default()
        }]),
        ..ClusterRole::default()
    }]
}

/// `ClusterRoleBindings`. Their names are those of HyperShift.
pub(super) fn bindings(clients: NodeClients) -> Vec<ClusterRoleBinding> {
    let bootstrapper = format!("system:serviceaccount:{BOOTSTRAPPER_NAMESPACE}:{BOOTSTRAPPER}");
    let requests = "system:certificates.k8s.io:certificatesigningrequests";
    let mut bindings = vec![
        binding(
            "create-csrs-for-bootstrapping",
            "system:node-bootstrapper",
            user(&bootstrapper),
        ),
        binding(
            "system-bootstrap-node-renewal",
            &format!("{requests}:selfnodeclient"),
            group(NODES),
        ),
        binding(
            "hypershift-metrics-client",
            "system:monitoring",
            user(METRICS_ACCOUNT),
        ),
        binding(METRICS_ROLE, METRICS_ROLE, user(METRICS_ACCOUNT)),
        // Kubernetes creates the role without a binding. Without it kubelets refuse `kubectl logs` and `kubectl exec`.
        binding(
            "system:kube-apiserver-to-kubelet",
            "system:kubelet-api-admin",
            user(API_SERVER),
        ),
    ];
    // The built-in controller approves requests of this subject.
    let approved = match clients {
        NodeClients::Everybody => group(BOOTSTRAPPERS),
        NodeClients::Machines => return bindings,
    };
    bindings.push(binding(
        "csr-approver",
        &format!("{requests}:nodeclient"),
        approved,
    ));
    bindings
}

fn binding(name: &str, role: &str, subject: Subject) -> ClusterRoleBinding {
    ClusterRoleBinding {
        metadata: named(name),
        role_ref: RoleRef {
            api_group: RBAC.to_owned(),
            kind: "ClusterRole".to_owned(),
            name: role.to_owned(),
        },
        subjects: Some(vec![subject]),
    }
}

fn group(name: &str) -> Subject {
    subject("Group", name)
}

fn user(name: &str) -> Subject {
    subject("User", name)
}

fn subject(kind: &str, name: &str) -> Subject {
    Subject {
        api_group: Some(RBAC.to_owned()),
        kind: kind.to_owned(),
        name: name.to_owned(),
        ..Subject::default()
    }
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        ..ObjectMeta::default()
    }
}
