//! Which annotations only an operator of the fleet may decide, and why.

use api::annotations::cluster::{
    API_CRITICAL_PRIORITY_CLASS, CONTROL_PLANE_OPERATOR_IMAGE_LABELS, CONTROL_PLANE_PRIORITY_CLASS,
    ETCD_PRIORITY_CLASS, IMAGE_OVERRIDES, POD_SECURITY_LEVEL,
};
use api::annotations::node_pool::KUBEVIRT_VM_JSONPATCH;
use api::annotations::{PRIVATE_CAPI_TYPES, SCOPE};

/// Beginning of the keys of this project.
pub(crate) const DOMAIN: &str = "hypershift.openshift.io/";
/// Ending of the keys that name an image of a component, those of later releases among them.
pub(crate) const IMAGE: &str = "-image";
/// Beginning of the keys by which operators and administrators agree on a migration.
pub(crate) const MIGRATION: &str = "hypershift.openshift.io/migration-";

/// The keys that no beginning or ending covers.
pub(crate) const KEYS: [&str; 11] = [
    // They run images, or make the operator take an image for another.
    IMAGE_OVERRIDES.key(),
    CONTROL_PLANE_OPERATOR_IMAGE_LABELS.key(),
    "hypershift.openshift.io/olm-catalogs-is-registry-overrides",
    // They lower pod security, or evict pods of other clusters.
    POD_SECURITY_LEVEL.key(),
    CONTROL_PLANE_PRIORITY_CLASS.key(),
    API_CRITICAL_PRIORITY_CLASS.key(),
    ETCD_PRIORITY_CLASS.key(),
    // They give pods and virtual machines devices, volumes and networks of others.
    KUBEVIRT_VM_JSONPATCH.key(),
    "hypershift.openshift.io/swift-pod-network-instance",
    // They decide which operator reconciles the cluster.
    PRIVATE_CAPI_TYPES,
    SCOPE,
];

/// Whether a key is reserved. The policy says the same in CEL.
#[cfg(test)]
pub(crate) fn is_reserved(key: &str) -> bool {
    let names_an_image = key.starts_with(DOMAIN) && key.ends_with(IMAGE);
    KEYS.contains(&key) || names_an_image || key.starts_with(MIGRATION)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The annotations that operators read, as the sources of the API have them.
    const SOURCES: [&str; 3] = [
        include_str!("../../../../api/src/annotations.rs"),
        include_str!("../../../../api/src/annotations/cluster.rs"),
        include_str!("../../../../api/src/annotations/node_pool.rs"),
    ];

    /// What an author may decide: it concerns the author's own cluster.
    const AUTHORS: [&str; 63] = [
        "allow-unsupported-kubevirt-rhcos-variants",
        "aws-karpenter-default-instance-profile",
        "aws-load-balancer-health-probe-mode",
        "aws-load-balancer-subnets",
        "aws-load-balancer-target-node-labels",
        "aws-machine-public-ips",
        "azure-load-balancer-health-probe-mode",
        "cleanup-cloud-resources",
        "cluster-scheduled",
        "cluster-size-override",
        "debug-deployments",
        "destroy-grace-period",
        "disable-ignition-server",
        "disable-machine-management",
        "disable-monitoring-services",
        "disable-pki-reconciliation",
        "disable-profiling",
        "ec2-instance-metadata-http-tokens",
        "enable-metrics-forwarding",
        "enable-spot",
        "ensureexists-pullsecret-reconcile",
        "force-upgrade-to",
        "ignition-config",
        "ignition-reached",
        "ignition-token-expiration-timestamp",
        "ingress-controller-load-balancer-scope",
        "kube-apiserver-goaway-chance",
        "kube-apiserver-gogc",
        "kube-apiserver-gomemlimit",
        "kube-apiserver-max-mutating-requests-inflight",
        "kube-apiserver-max-requests-inflight",
        "kube-apiserver-service-account-token-max-expiration",
        "kube-apiserver-verbosity-level",
        "last-token-generation-time",
        "machine-health-check-max-unhealthy",
        "machine-health-check-node-startup-timeout",
        "machine-health-check-timeout",
        "management-platform",
        "node-pool-config-inputs",
        "node-pool-template-hash",
        "node-pool-upgrade-type",
        "nodePool",
        "nodePoolCurrentConfig",
        "nodePoolCurrentConfigVersion",
        "nodePoolMaxUnavailable",
        "nodePoolPlatformMachineTemplate",
        "nodePoolTaints",
        "nodePoolTargetConfigVersion",
        "nodepool-supports-kubevirt-topology-spread-constraints",
        "private-ingress-controller",
        "release-version",
        "request-serving-node-additional-selector",
        "resource-based-cp-auto-scaling",
        "restart-date",
        "restored-from-backup",
        "shared-load-balancer-health-probe-path",
        "shared-load-balancer-health-probe-port",
        "skip-delete-hosted-controlplane-namespace",
        "skip-kas-conflict-san-validation",
        "skip-release-image-validation",
        "topology",
        // Prefixes of other domains.
        "",
        "login-url-override",
    ];

    /// Keys of this project's domain in a text.
    fn keys(text: &str) -> BTreeSet<&str> {
        let quoted = text.split('"').skip(1).step_by(2);
        quoted.filter(|one| one.contains(DOMAIN)).collect()
    }

    /// A new annotation is either reserved or said to be the author's.
    #[test]
    fn every_annotation_is_the_authors_or_reserved() {
        let mut seen = 0;
        for key in SOURCES.into_iter().flat_map(keys) {
            let (_, name) = key.split_once(DOMAIN).unwrap_or_default();
            let authors = AUTHORS.contains(&name)
                || key.starts_with("idpoverrides.")
                || key.starts_with("resource-request-override.");
            assert!(
                authors != is_reserved(key),
                "{key}: add it to KEYS if it reaches beyond the author's cluster, else to AUTHORS"
            );
            seen += 1;
        }
        assert!(seen > 80, "{seen} annotations");
    }
}
