//! Flags whose value is one of a few.

use clap::ValueEnum;

/// Replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub(super) enum Availability {
    /// Several, so that the loss of a node does no harm
    HighlyAvailable,
    /// One
    SingleReplica,
}

/// How a new release reaches nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub(in crate::create) enum UpgradeType {
    /// New machines take the place of old ones
    Replace,
    /// Machines stay, and their systems are updated
    InPlace,
}

/// A processor architecture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lowercase")]
pub(in crate::create) enum Arch {
    /// 64-bit x86
    Amd64,
    /// 64-bit Arm
    Arm64,
    /// 64-bit POWER, little-endian
    Ppc64le,
    /// 64-bit IBM Z
    S390x,
}

/// A network provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum NetworkType {
    /// OVN-Kubernetes
    #[value(name = "OVNKubernetes")]
    OvnKubernetes,
    /// Calico
    #[value(name = "Calico")]
    Calico,
    /// One that you install
    #[value(name = "Other")]
    Other,
    /// The old one, for old releases
    #[value(name = "OpenShiftSDN")]
    OpenShiftSdn,
}

/// Where catalogs of operators run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum CatalogPlacement {
    /// Beside the control plane
    Management,
    /// On the cluster's own nodes
    Guest,
}

/// Features that a cluster has before they are supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub(super) enum FeatureSet {
    /// None
    Default,
    /// Those in technology preview
    TechPreviewNoUpgrade,
    /// Those in development
    DevPreviewNoUpgrade,
}

/// A part of a cluster that can be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub(crate) enum Capability {
    /// The image registry
    ImageRegistry,
    /// Image streams and templates
    #[value(name = "openshift-samples")]
    Samples,
    /// The Insights operator
    Insights,
    /// Bare-metal hosts
    #[value(name = "baremetal")]
    Baremetal,
    /// The web console
    Console,
    /// The Node Tuning Operator
    NodeTuning,
    /// Ingress controllers; the console needs them
    Ingress,
}

/// From where a control plane in a cloud is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub(super) enum EndpointAccess {
    /// From the internet
    Public,
    /// From the internet, and by nodes through a private endpoint
    PublicAndPrivate,
    /// From the virtual network alone
    Private,
}

/// The name of a value, as it stands in an object.
pub(in crate::create) fn name_of(value: impl ValueEnum + Copy) -> String {
    value
        .to_possible_value()
        .map(|value| value.get_name().to_owned())
        .unwrap_or_default()
}

// === impl Arch ===

impl From<Arch> for api::hypershift::v1beta1::node_pool::Arch {
    fn from(arch: Arch) -> Self {
        match arch {
            Arch::Amd64 => Self::Amd64,
            Arch::Arm64 => Self::Arm64,
            Arch::Ppc64le => Self::Ppc64le,
            Arch::S390x => Self::S390x,
        }
    }
}
