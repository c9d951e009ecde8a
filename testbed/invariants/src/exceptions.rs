//! What the invariants do not hold of, with the reasons. Nothing else is exempt.

use crate::Invariant;

/// Invariants, the components or containers that they do not hold of, and the reason.
type Exception = (&'static [Invariant], &'static [&'static str], &'static str);

/// Workloads that operators of OpenShift create in the namespace of a control plane, as they do in each cluster.
const OF_OPERATORS: &str = "its operator creates it, and decides its pods";

const EXCEPTIONS: &[Exception] = &[
    (
        &[Invariant::Priorities],
        &["multus-admission-controller"],
        OF_OPERATORS,
    ),
    (
        &[Invariant::TerminationMessages],
        &[
            "cloud-network-config-controller",
            "network-node-identity",
            "ovnkube-control-plane",
        ],
        OF_OPERATORS,
    ),
    (
        &[Invariant::ResourceRequests],
        &[
            "certified-operators-catalog-rollout",
            "community-operators-catalog-rollout",
            "redhat-operators-catalog-rollout",
        ],
        "a Job that ends at once",
    ),
    (
        &[Invariant::LocalVolumes],
        &[
            "aws-ebs-csi-driver-operator",
            "azure-disk-csi-driver-controller",
            "azure-disk-csi-driver-operator",
            "azure-file-csi-driver-controller",
            "azure-file-csi-driver-operator",
            "network-node-identity",
            "openstack-cinder-csi-driver-controller",
            "openstack-cinder-csi-driver-operator",
            "openstack-manila-csi-controllerplugin",
            "ovnkube-control-plane",
        ],
        OF_OPERATORS,
    ),
    (
        &[Invariant::ReadOnlyRoot, Invariant::TemporaryDirectories],
        &[
            "aws-ebs-csi-driver-controller",
            "aws-ebs-csi-driver-operator",
            "azure-disk-csi-driver-controller",
            "azure-disk-csi-driver-operator",
            "azure-file-csi-driver-controller",
            "azure-file-csi-driver-operator",
            "cloud-network-config-controller",
            "csi-snapshot-controller",
            "csi-snapshot-webhook",
            "multus-admission-controller",
            "network-node-identity",
            "openstack-cinder-csi-driver-controller",
            "openstack-manila-csi-controllerplugin",
            "ovnkube-control-plane",
            "shared-resource-csi-driver-operator",
        ],
        OF_OPERATORS,
    ),
    (
        &[Invariant::ManagementTokens],
        &["packageserver"],
        "its program does not start without a token, although it does not use it",
    ),
    (
        &[Invariant::ManagementTokens],
        &[
            "aws-ebs-csi-driver-controller",
            "azure-cloud-controller-manager",
            "azure-disk-csi-driver-controller",
            "azure-disk-csi-driver-operator",
            "azure-file-csi-driver-controller",
            "azure-file-csi-driver-operator",
            "csi-snapshot-controller",
            "kubevirt-csi-controller",
            "openstack-cinder-csi-driver-controller",
            "openstack-cloud-controller-manager",
            "openstack-manila-csi-controllerplugin",
            "shared-resource-csi-driver-operator",
        ],
        "clouds give credentials for the pod's own token",
    ),
    (
        &[Invariant::Scheduling],
        &[
            "aws-ebs-csi-driver-operator",
            "shared-resource-csi-driver-operator",
        ],
        "it tolerates all taints",
    ),
    (
        &[Invariant::Users],
        &[
            "azure-disk-csi-driver-controller",
            "azure-disk-csi-driver-operator",
            "azure-file-csi-driver-controller",
            "azure-file-csi-driver-operator",
            "network-node-identity",
            "ovnkube-control-plane",
        ],
        OF_OPERATORS,
    ),
];

/// How often containers may restart, by component or container; those that are not listed may not.
pub(crate) const TOLERATED_RESTARTS: [(u64, &[&str]); 4] = [
    (
        20,
        &[
            "catalog-operator",
            "certified-operators-catalog",
            "cloud-credential-operator",
            "community-operators-catalog",
            "ingress-operator",
            "kubevirt-csi-controller",
            "olm-operator",
            "openstack-manila-csi-controllerplugin",
            "redhat-marketplace-catalog",
            "redhat-operators-catalog",
        ],
    ),
    (5, &["dns-operator"]),
    (2, &["kubevirt-cloud-controller-manager"]),
    (
        1,
        &[
            "aws-ebs-csi-driver-controller",
            "cluster-network-operator",
            "cluster-version-operator",
            "gcp-cloud-controller-manager",
            "network-node-identity",
        ],
    ),
];

/// Conditions that the testbed's cloud cannot confirm, and why: they may be missing or Unknown. If they are True or False,
/// they must be right.
pub(crate) const UNCONFIRMED: [(&str, &str); 6] = [
    (
        "AWSDefaultSecurityGroupCreated",
        "the image of the control-plane-operator does not say that it creates the group",
    ),
    (
        "AWSSecurityGroupAvailable",
        "it follows AWSDefaultSecurityGroupCreated",
    ),
    (
        "ValidAWSIdentityProvider",
        "the control-plane-operator has no token service of AWS",
    ),
    (
        "ValidAWSKMSConfig",
        "the control-plane-operator has no key management service of AWS",
    ),
    (
        "ValidAzureKMSConfig",
        "only an encryption with the key in Azure shows it",
    ),
    (
        "ValidOIDCConfiguration",
        "hypershift-operator has no bucket for the documents of the issuer",
    ),
];

/// What a log says before a restart that is no failure: another replica leads.
pub(crate) const FORGIVEN: [&str; 3] = [
    "Leadership lost",
    "leader election lost",
    "leaderelection lost",
];

/// Whether an exception covers one of the names.
pub(crate) fn cover(invariant: Invariant, names: &[String]) -> bool {
    EXCEPTIONS
        .iter()
        .filter(|(invariants, ..)| invariants.contains(&invariant))
        .any(|(_, listed, _)| names.iter().any(|name| listed.contains(&name.as_str())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_are_sorted_and_have_a_reason() {
        for (invariants, names, reason) in EXCEPTIONS {
            assert!(names.is_sorted(), "{names:?}");
            assert!(!invariants.is_empty() && !reason.is_empty(), "{names:?}");
        }
        assert!(UNCONFIRMED.is_sorted(), "{UNCONFIRMED:?}");
        assert!(UNCONFIRMED.iter().all(|(_, reason)| !reason.is_empty()));
        for (_, names) in TOLERATED_RESTARTS {
            assert!(names.is_sorted(), "{names:?}");
        }
    }

    #[test]
    fn exceptions_cover_names_of_their_invariant_only() {
        let names = |name: &str| [name.to_owned()];
        for (invariant, name, expected) in [
            (Invariant::ReadOnlyRoot, "csi-snapshot-controller", true),
            (Invariant::PullPolicies, "csi-snapshot-controller", false),
            (Invariant::ReadOnlyRoot, "kube-apiserver", false),
            (Invariant::ManagementTokens, "packageserver", true),
        ] {
            assert_eq!(cover(invariant, &names(name)), expected, "{name}");
        }
    }
}
