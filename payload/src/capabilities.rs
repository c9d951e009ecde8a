//! The capabilities of a control-plane-operator, as labels of its image.

use std::collections::BTreeMap;

/// What the labels begin with.
const PREFIX: &str = "io.openshift.hypershift.";

/// Declares the labels.
macro_rules! labels {
    ($($(#[$doc:meta])* $capability:ident = $label:literal,)*) => {
        /// Something that not every control-plane-operator can do.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Capability {
            $($(#[$doc])* $capability,)*
        }

        impl Capability {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$capability,)*];

            /// The label without its prefix.
            fn name(self) -> &'static str {
                match self {
                    $(Self::$capability => $label,)*
                }
            }
        }
    };
}

labels! {
    /// Has the other programs of a control plane as subcommands.
    Subcommands = "control-plane-operator-subcommands",
    /// Leaves the nodes' HAProxy to the NodePool controller.
    SkipsHaproxy = "control-plane-operator-skips-haproxy",
    /// Its ignition server serves a health check.
    IgnitionHealthz = "ignition-server-healthz-handler",
    /// Runs the ignition server itself.
    ManagesIgnitionServer = "control-plane-operator-manages-ignition-server",
    /// Runs the machine approver itself.
    ManagesMachineApprover = "control-plane-operator-manages.cluster-machine-approver",
    /// Runs the cluster autoscaler itself.
    ManagesAutoscaler = "control-plane-operator-manages.cluster-autoscaler",
    /// Takes configuration of nodes that is compressed and encoded.
    DecompressesConfig = "control-plane-operator-manages.decompress-decode-config",
    /// Makes the workers' security group on AWS.
    CreatesAwsSecurityGroup = "control-plane-operator-creates-aws-sg",
    /// Labels pods that may reach the management cluster's API server.
    LabelsManagementAccess = "control-plane-operator-applies-management-kas-network-policy-label",
    /// Its pods keep to the restricted pod security standard.
    RestrictedPodSecurity = "restricted-psa",
    /// Its PKI operator signs certificate requests.
    SignsCertificates = "control-plane-pki-operator-signs-csrs",
    /// Counts the guest's nodes.
    ReportsNodeCount = "hosted-cluster-config-operator-reports-node-count",
    /// Makes a kubeconfig for a name of the user's choice.
    CustomKubeconfig = "control-plane-operator-supports-kas-custom-kubeconfig",
    /// Can run a control plane with Cluster API objects in the private groups.
    PrivateTypes = "control-plane-operator-private-capi-types",
    /// Uses the component framework of version 2.
    V2 = "control-plane-operator.v2-isdefault",
}

/// What one control-plane-operator can do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capabilities(Vec<Capability>);

// === impl Capability ===

impl Capability {
    /// The label of the image.
    pub fn label(self) -> String {
        format!("{PREFIX}{}", self.name())
    }
}

// === impl Capabilities ===

impl Capabilities {
    /// The capabilities of labels that are `true` or empty.
    pub fn of_labels(labels: &BTreeMap<String, String>) -> Self {
        let has = |capability: &Capability| {
            labels
                .get(&capability.label())
                .is_some_and(|value| matches!(value.as_str(), "" | "true"))
        };
        Self(Capability::ALL.iter().copied().filter(has).collect())
    }

    /// The capabilities that are assumed when labels cannot be read: those of a current operator.
    pub fn unknown() -> Self {
        Self(vec![Capability::V2])
    }

    /// Whether it can.
    pub fn has(&self, capability: Capability) -> bool {
        self.0.contains(&capability)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn labels_determine_capabilities() {
        let labels = [
            (Capability::Subcommands.label(), "true"),
            (Capability::SkipsHaproxy.label(), ""),
            (Capability::V2.label(), "false"),
            ("control-plane-operator-creates-aws-sg".to_owned(), "true"),
        ];
        let labels = labels.map(|(label, value)| (label, value.to_owned()));
        let capabilities = Capabilities::of_labels(&labels.into());
        let has: Vec<_> = Capability::ALL
            .iter()
            .filter(|one| capabilities.has(**one))
            .collect();
        assert_eq!(has, [&Capability::Subcommands, &Capability::SkipsHaproxy]);
    }

    #[test]
    fn each_capability_has_its_own_label() {
        let labels: BTreeSet<_> = Capability::ALL.iter().map(|one| one.label()).collect();
        assert_eq!(labels.len(), Capability::ALL.len());
        assert!(
            labels
                .iter()
                .all(|label| label.starts_with("io.openshift.hypershift."))
        );
        assert!(Capabilities::unknown().has(Capability::V2));
    }
}
