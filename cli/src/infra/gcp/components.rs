//! The components that use Google Cloud: a service account each, with its roles, and who acts as it. Pure.

/// A component.
#[derive(Debug)]
pub(crate) struct Component {
    /// Name, as a part of that of its service account.
    pub(crate) name: &'static str,
    /// What people see.
    pub(super) title: &'static str,
    /// Field of the HostedCluster with its e-mail address.
    pub(crate) field: &'static str,
    /// Its roles in the project.
    pub(super) roles: &'static [&'static str],
    /// Service accounts of the hosted cluster that act as it: namespaces and names.
    pub(super) subjects: &'static [(&'static str, &'static str)],
}

/// The role of those who act as a service account.
pub(super) const WORKLOAD_IDENTITY_USER: &str = "roles/iam.workloadIdentityUser";

/// The components.
pub(crate) const COMPONENTS: [Component; 6] = [
    Component {
        name: "nodepool-mgmt",
        title: "HyperShift node pools",
        field: "nodePool",
        roles: &[
            "roles/compute.instanceAdmin.v1",
            "roles/compute.networkAdmin",
            "roles/iam.serviceAccountUser",
        ],
        subjects: &[("kube-system", "capi-gcp-controller-manager")],
    },
    Component {
        name: "ctrlplane-op",
        title: "HyperShift control plane operator",
        field: "controlPlane",
        roles: &[
            "roles/dns.admin",
            "roles/compute.networkAdmin",
            "roles/compute.viewer",
        ],
        subjects: &[("kube-system", "control-plane-operator")],
    },
    Component {
        name: "cloud-controller",
        title: "HyperShift cloud controller manager",
        field: "cloudController",
        roles: &[
            "roles/compute.loadBalancerAdmin",
            "roles/compute.securityAdmin",
            "roles/compute.viewer",
        ],
        subjects: &[("kube-system", "cloud-controller-manager")],
    },
    Component {
        name: "gcp-pd-csi",
        title: "HyperShift persistent disks",
        field: "storage",
        roles: &[
            "roles/compute.storageAdmin",
            "roles/compute.instanceAdmin.v1",
            "roles/iam.serviceAccountUser",
            "roles/resourcemanager.tagUser",
        ],
        subjects: &[(
            "openshift-cluster-csi-drivers",
            "gcp-pd-csi-driver-controller-sa",
        )],
    },
    Component {
        name: "image-registry",
        title: "HyperShift image registry",
        field: "imageRegistry",
        roles: &["roles/storage.admin"],
        subjects: &[
            (
                "openshift-image-registry",
                "cluster-image-registry-operator",
            ),
            ("openshift-image-registry", "registry"),
        ],
    },
    Component {
        name: "cloud-network",
        title: "HyperShift cloud network configuration",
        field: "network",
        roles: &[
            "roles/compute.instanceAdmin.v1",
            "roles/compute.networkUser",
        ],
        subjects: &[(
            "openshift-cloud-network-config-controller",
            "cloud-network-config-controller",
        )],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infra::gcp::LONGEST_WITH_IDENTITIES;

    #[test]
    fn ids_of_service_accounts_have_at_most_30_characters() {
        let longest = COMPONENTS.iter().map(|it| it.name.len()).max().unwrap();
        assert_eq!(LONGEST_WITH_IDENTITIES + "-".len() + longest, 30);
    }
}
