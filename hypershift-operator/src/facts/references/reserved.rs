//! Names of objects of the control plane in its namespace: referenced objects of users are copied there, and must
//! not take their place. Pure.
//!
//! Names of components that only other releases have are in the list, too: such a component may be added later.

use crate::names;

/// Names of Secrets and ConfigMaps, one list for both.
const NAMES: [&str; 169] = [
    "admin-kubeconfig",
    "aggregator-client-ca",
    "auth-config",
    "aws-cloud-config",
    "aws-node-termination-handler-creds",
    "aws-pod-identity-webhook-kubeconfig",
    "aws-pod-identity-webhook-serving-cert",
    "azure-cloud-config",
    "azure-disk-csi-config",
    "azure-file-csi-config",
    "azure-image-registry-credentials",
    "azure-ingress-credentials",
    "azure-kms-config",
    "azure-workload-identity-webhook-kubeconfig",
    "azure-workload-identity-webhook-serving-cert",
    "bootstrap-kubeconfig",
    "capi-migration-journal",
    "capi-webhooks-tls",
    "catalog-operator-serving-cert",
    "ccm-config",
    "client-ca",
    "cloud-controller-creds",
    "cloud-controller-manager-creds",
    "cloud-credential-operator-service-account-kubeconfig",
    "cloud-network-config-controller-creds",
    "cluster-image-registry-operator",
    "cluster-policy-controller-cert",
    "cluster-policy-controller-config",
    "cluster-signer-ca",
    "cluster-storage-operator-config",
    "cluster-storage-operator-serving-cert",
    "control-plane-operator-creds",
    "control-plane-pki-operator-config",
    "csi-snapshot-controller-operator-config",
    "csi-snapshot-controller-operator-serving-cert",
    "custom-admin-kubeconfig",
    "customer-system-admin-client-cert-key",
    "customer-system-admin-signer",
    "customer-system-admin-signer-ca",
    "cvo-server",
    "dns-operator-service-account-kubeconfig",
    "driver-config",
    "ebs-cloud-credentials",
    "endpoint-resolver-ca",
    "endpoint-resolver-serving-cert",
    "etcd-ca",
    "etcd-client-tls",
    "etcd-metrics-ca",
    "etcd-metrics-client-tls",
    "etcd-metrics-signer",
    "etcd-peer-tls",
    "etcd-server-tls",
    "etcd-signer",
    "fake-cloud-credentials-secret",
    "gcp-cloud-config",
    "gcp-pd-cloud-credentials",
    "hcco-client",
    "hcco-kubeconfig",
    "hcco-signer",
    "ignition-config-40-image-content-source",
    "ignition-config-apiserver-haproxy",
    "ignition-config-fips",
    "ignition-config-worker-ssh",
    "ignition-server",
    "ignition-server-ca-cert",
    "ignition-server-serving-cert",
    "image-registry-controller-config",
    "image-registry-creds",
    "ingress-crt",
    "ingress-operator-service-account-kubeconfig",
    "karpenter-credentials",
    "karpenter-subnets",
    "kas-aggregator-client-signer",
    "kas-aggregator-crt",
    "kas-audit-config",
    "kas-authentication-token-webhook-config",
    "kas-bootstrap-client",
    "kas-bootstrap-container-client",
    "kas-bootstrap-container-kubeconfig",
    "kas-bootstrap-container-signer",
    "kas-config",
    "kas-egress-selector-config",
    "kas-kubelet-client-crt",
    "kas-server-crt",
    "kas-server-private-crt",
    "kcm-config",
    "kcm-server",
    "kms-creds",
    "konnectivity-agent",
    "konnectivity-ca-bundle",
    "konnectivity-client",
    "konnectivity-cluster",
    "konnectivity-server",
    "konnectivity-server-local",
    "konnectivity-signer",
    "kube-apiserver",
    "kube-apiserver-proxy",
    "kube-apiserver-to-kubelet-signer",
    "kube-control-plane-signer",
    "kube-controller-manager",
    "kube-controller-manager-kubeconfig",
    "kube-root-ca.crt",
    "kube-scheduler",
    "kube-scheduler-client",
    "kube-scheduler-kubeconfig",
    "kubeadmin-password",
    "kubelet-client-ca",
    "kubevirt-cloud-config",
    "kubevirt-csi-controller-service-account-kubeconfig",
    "kubevirt-infra-credentials",
    "localhost-kubeconfig",
    "machine-approver",
    "machine-approver-config",
    "machine-config-server",
    "manila-cloud-credentials",
    "mcs-crt",
    "metrics-client",
    "metrics-proxy-ca-cert",
    "metrics-proxy-config",
    "metrics-proxy-serving-cert",
    "multus-admission-controller-secret",
    "network-node-identity-secret",
    "node-management-creds",
    "node-tuning-operator-tls",
    "oauth-master-ca-bundle",
    "oauth-metadata",
    "oauth-openshift",
    "oauth-openshift-audit",
    "oauth-openshift-default-error-template",
    "oauth-openshift-default-login-template",
    "oauth-openshift-default-provider-selection-template",
    "oauth-openshift-session",
    "oauth-server-crt",
    "olm-collect-profiles",
    "olm-operator-serving-cert",
    "openshift-apiserver",
    "openshift-apiserver-audit",
    "openshift-apiserver-cert",
    "openshift-authenticator-cert",
    "openshift-config-managed-trusted-ca-bundle",
    "openshift-controller-manager-cert",
    "openshift-controller-manager-config",
    "openshift-oauth-apiserver-audit",
    "openshift-oauth-apiserver-cert",
    "openshift-route-controller-manager-cert",
    "openshift-route-controller-manager-config",
    "openshift-service-ca.crt",
    "openstack-cloud-config",
    "openstack-cloud-credentials",
    "openstack-trusted-ca",
    "ovn-control-plane-metrics-cert",
    "packageserver-cert",
    "pprof-cert",
    "recycler-config",
    "root-ca",
    "router",
    "sa-signing-key",
    "scheduler-server",
    "service-network-admin-kubeconfig",
    "set-karpenter-taint",
    "sre-system-admin-client-cert-key",
    "sre-system-admin-signer",
    "sre-system-admin-signer-ca",
    "ssh-key",
    "system-admin-client",
    "system-admin-signer",
    "total-client-ca",
    "trusted-ca",
    "trusted-ca-bundle-managed",
];
/// The hash suffix in names of objects of NodePools.
const HASH: usize = 8;

/// Whether the name is that of an object of the control plane of the cluster with this infrastructure id.
pub(crate) fn is_reserved(name: &str, infra_id: &str) -> bool {
    let is_of_cluster_api = name.strip_suffix("-kubeconfig") == Some(infra_id);
    // The settings of the kubelet of a class of Karpenter's machines.
    let is_of_karpenter = name.starts_with(names::KARPENTER_KUBELET);
    NAMES.binary_search(&name).is_ok() || is_of_cluster_api || is_of_karpenter || is_of_pool(name)
}

/// Whether the name is that of a node pool's Secret: `token-<pool>-<hash>` or `user-data-<pool>-<hash>`.
fn is_of_pool(name: &str) -> bool {
    let rest = ["token-", "user-data-"]
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix));
    let hash = rest
        .and_then(|it| it.rsplit_once('-'))
        .map(|(_, hash)| hash);
    hash.is_some_and(|it| it.len() == HASH && it.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn names_are_sorted() {
        assert!(NAMES.is_sorted(), "a binary search needs an order");
    }

    /// Check T09: names of the finding, and some names of users.
    #[test]
    fn names_of_the_control_plane_are_reserved() {
        for (name, expected) in [
            ("kube-apiserver-proxy", true),
            ("capi-migration-journal", true),
            ("kas-server-crt", true),
            ("customer-system-admin-signer", true),
            ("sre-system-admin-client-cert-key", true),
            ("token-workers-0a1b2c3d", true),
            ("user-data-workers-0a1b2c3d", true),
            ("one-x7k2p-kubeconfig", true),
            ("karpenter-credentials", true),
            ("karpenter-kubelet-default", true),
            ("webhook-kubeconfig", false),
            ("token-github", false),
            ("user-ca-bundle", false),
            ("htpasswd", false),
        ] {
            assert_eq!(is_reserved(name, "one-x7k2p"), expected, "{name}");
        }
    }

    /// Every Secret and ConfigMap that a component of the control plane is rendered with.
    #[test]
    fn names_of_component_objects_are_reserved() {
        let golden =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../control-plane-operator/tests/golden");
        let mut seen = 0;
        for component in fs::read_dir(golden).unwrap() {
            for file in fs::read_dir(component.unwrap().path()).unwrap() {
                let file = file.unwrap().file_name().into_string().unwrap();
                let name = file.trim_end_matches(".yaml");
                let name = name
                    .strip_prefix("secret-")
                    .or(name.strip_prefix("configmap-"));
                let Some(name) = name else { continue };
                assert!(is_reserved(name, ""), "{name} is not reserved");
                seen += 1;
            }
        }
        assert!(seen > 10, "{seen}");
    }
}
