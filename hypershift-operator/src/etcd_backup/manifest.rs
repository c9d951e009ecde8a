//! What a backup Job needs beside itself: who it is, and what lets it in to etcd. Pure.

use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::ApiResource;
use serde_json::{Value, json};

use super::job::{APP, ETCD_BACKUP, HCP_NAMESPACE};
use crate::names::{CLUSTER, MANAGED_BY, OPERATOR};

/// The service account of all backup Jobs, in the namespace of the operator. Roles of clouds name it. It is also the name
/// of the role and of the binding in the namespace of a control plane.
pub(super) const SERVICE_ACCOUNT: &str = "etcd-backup-job";
/// The NetworkPolicy in the namespace of a control plane.
const POLICY: &str = "allow-etcd-backup";

/// An object that is applied.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Manifest {
    pub(super) resource: ApiResource,
    pub(super) body: Value,
}

/// The kinds and names of what lets a Job in, in the order in which it is deleted.
pub(super) fn access_names() -> [(ApiResource, &'static str); 3] {
    [
        (ApiResource::erase::<NetworkPolicy>(&()), POLICY),
        (ApiResource::erase::<RoleBinding>(&()), SERVICE_ACCOUNT),
        (ApiResource::erase::<Role>(&()), SERVICE_ACCOUNT),
    ]
}

/// The service account. It has no annotations for a cloud: backups of several tenants share it.
pub(super) fn service_account(namespace: &str) -> Manifest {
    Manifest {
        resource: ApiResource::erase::<ServiceAccount>(&()),
        body: json!({
            "metadata": {
                "namespace": namespace,
                "name": SERVICE_ACCOUNT,
                "labels": { MANAGED_BY: OPERATOR },
            },
            // Its pods have projected tokens.
            "automountServiceAccountToken": false,
        }),
    }
}

/// What lets a Job of the operator's namespace in to the etcd of a control plane: of Jobs for this control plane only.
pub(super) fn access(control_plane: &str, cluster: &str, namespace: &str) -> [Manifest; 3] {
    let metadata = |name: &str| {
        json!({
            "namespace": control_plane,
            "name": name,
            "labels": { MANAGED_BY: OPERATOR },
            "annotations": { CLUSTER: cluster },
        })
    };
    let get = |resource: &str, name: &str| {
        json!({
            "apiGroups": [""],
            "resources": [resource],
            "resourceNames": [name],
            "verbs": ["get"],
        })
    };
    let role = json!({
        "metadata": metadata(SERVICE_ACCOUNT),
        "rules": [get("secrets", "etcd-client-tls"), get("configmaps", "etcd-ca")],
    });
    let binding = json!({
        "metadata": metadata(SERVICE_ACCOUNT),
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "Role",
            "name": SERVICE_ACCOUNT,
        },
        "subjects": [{
            "kind": "ServiceAccount",
            "namespace": namespace,
            "name": SERVICE_ACCOUNT,
        }],
    });
    let policy = json!({
        "metadata": metadata(POLICY),
        "spec": {
            "podSelector": { "matchLabels": { APP: "etcd" } },
            "policyTypes": ["Ingress"],
            "ingress": [{
                // Both selectors in one entry: the pods of this backup in that namespace.
                "from": [{
                    "namespaceSelector": {
                        "matchLabels": { "kubernetes.io/metadata.name": namespace },
                    },
                    "podSelector": {
                        "matchLabels": { APP: ETCD_BACKUP, HCP_NAMESPACE: control_plane },
                    },
                }],
                "ports": [{ "protocol": "TCP", "port": 2379 }],
            }],
        },
    });
    [
        Manifest {
            resource: ApiResource::erase::<Role>(&()),
            body: role,
        },
        Manifest {
            resource: ApiResource::erase::<RoleBinding>(&()),
            body: binding,
        },
        Manifest {
            resource: ApiResource::erase::<NetworkPolicy>(&()),
            body: policy,
        },
    ]
}

// === impl Manifest ===

impl Manifest {
    pub(super) fn namespace(&self) -> &str {
        self.body["metadata"]["namespace"]
            .as_str()
            .unwrap_or_default()
    }

    pub(super) fn name(&self) -> &str {
        self.body["metadata"]["name"].as_str().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check T27: the service account is shared, so what it may do in a namespace names its objects.
    #[test]
    fn access_is_limited_to_one_control_plane() {
        let [role, binding, policy] = access("clusters-one", "clusters/one", "hypershift");
        for manifest in [&role, &binding, &policy] {
            assert_eq!(manifest.namespace(), "clusters-one");
        }
        for rule in role.body["rules"].as_array().unwrap() {
            assert_eq!(rule["verbs"], json!(["get"]));
            assert_eq!(rule["resourceNames"].as_array().unwrap().len(), 1);
        }
        let from = &policy.body["spec"]["ingress"][0]["from"];
        assert_eq!(from.as_array().unwrap().len(), 1, "not a list of two peers");
        assert_eq!(
            from[0]["podSelector"]["matchLabels"][HCP_NAMESPACE],
            "clusters-one"
        );
        assert_eq!(
            from[0]["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"],
            "hypershift"
        );
    }

    #[test]
    fn what_is_created_for_a_job_is_what_is_deleted() {
        let created = access("clusters-one", "clusters/one", "hypershift");
        let mut created: Vec<_> = created
            .iter()
            .map(|it| (it.resource.kind.clone(), it.name().to_owned()))
            .collect();
        let names = access_names();
        let names = names.iter();
        let mut deleted: Vec<_> = names
            .map(|(resource, name)| (resource.kind.clone(), (*name).to_owned()))
            .collect();
        created.sort();
        deleted.sort();
        assert_eq!(created, deleted);
    }
}
