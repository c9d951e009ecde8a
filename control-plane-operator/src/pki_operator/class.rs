//! The two classes of break-glass signers, and the names of what belongs to each.

use api::certificates::v1alpha1::SignerClass;

/// ConfigMap with the signers of both classes, which the API server trusts: CPO adds it to its client CA bundle.
pub(super) const TOTAL_CLIENT_CA: &str = "total-client-ca";
/// Key of all bundles.
pub(super) const BUNDLE_KEY: &str = "ca-bundle.crt";

/// A class of signers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Class {
    /// Administrators of the hosted cluster.
    Customer,
    /// Engineers of the service.
    Sre,
}

// === impl Class ===

impl Class {
    pub(super) const ALL: [Self; 2] = [Self::Customer, Self::Sre];

    /// Finds a class by its name in the API.
    pub(super) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }

    /// Its name in the API, in signer names and in user names.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Customer => "customer-break-glass",
            Self::Sre => "sre-break-glass",
        }
    }

    /// The `spec.signerName` of its requests. Namespaces have no dots, so no other namespace has the same name.
    pub(super) fn signer_name(self, namespace: &str) -> String {
        format!("hypershift.openshift.io/{namespace}.{}", self.name())
    }

    /// What the common name of each of its certificates begins with.
    pub(super) fn user_prefix(self) -> String {
        format!("system:{}:", self.name())
    }

    /// Secret with the signer.
    pub(super) fn signer(self) -> String {
        format!("{}-admin-signer", self.prefix())
    }

    /// ConfigMap with the trusted signers of the class.
    pub(super) fn bundle(self) -> String {
        format!("{}-admin-signer-ca", self.prefix())
    }

    /// Secret with a client certificate.
    pub(super) fn client(self) -> String {
        format!("{}-admin-client-cert-key", self.prefix())
    }

    /// Condition of the HostedControlPlane: whether rotation fails.
    pub(super) fn condition(self) -> &'static str {
        match self {
            Self::Customer => "CertRotation_CustomerAdminKubeconfigSigner_Degraded",
            Self::Sre => "CertRotation_SREAdminKubeconfigSigner_Degraded",
        }
    }

    /// Field manager of signatures.
    pub(super) fn signing_manager(self) -> String {
        format!("{}-certificate-signing-controller", self.name())
    }

    fn prefix(self) -> &'static str {
        match self {
            Self::Customer => "customer-system",
            Self::Sre => "sre-system",
        }
    }
}

impl From<SignerClass> for Class {
    fn from(class: SignerClass) -> Self {
        match class {
            SignerClass::CustomerBreakGlass => Self::Customer,
            SignerClass::SreBreakGlass => Self::Sre,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_the_names_of_the_api() {
        for class in [SignerClass::CustomerBreakGlass, SignerClass::SreBreakGlass] {
            let name = serde_json::to_value(class).unwrap();
            let parsed = Class::parse(name.as_str().unwrap());
            assert_eq!(parsed, Some(Class::from(class)));
        }
        assert_eq!(Class::parse("other"), None);
    }

    #[test]
    fn signer_names_differ_by_namespace_and_class() {
        let name = |class: Class, namespace| class.signer_name(namespace);
        assert_eq!(
            name(Class::Customer, "clusters-a"),
            "hypershift.openshift.io/clusters-a.customer-break-glass"
        );
        assert_ne!(
            name(Class::Sre, "clusters-a"),
            name(Class::Sre, "clusters-b")
        );
    }
}
