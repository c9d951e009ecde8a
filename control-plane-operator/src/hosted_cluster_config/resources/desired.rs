//! The objects of the hosted cluster that this operator maintains, built without requests.
//!
//! A [`Step`] builds the objects of one subject from the HostedControlPlane, the release, objects of the control plane
//! namespace, and the live objects of the hosted cluster. [`plan()`] compares an object with the live one, and decides what
//! to write. Steps run in order; within a step, an object that cannot be built does not prevent the others.

mod admission_policies;
mod aggregated_apis;
mod alerts;
mod authorities;
mod azure;
mod ca_bundles;
mod cloud_config;
mod cloud_credentials;
mod cluster_operators;
mod cluster_version;
mod connection_checker;
mod crds;
mod error;
mod global_config;
mod global_pull_secret;
mod ingress;
mod input;
mod installation;
mod kinds;
mod konnectivity;
mod kubeadmin;
mod kubelet_configs;
mod kubernetes_endpoints;
mod kubevirt_csi;
mod legacy;
mod metrics_forwarder;
mod namespaces;
mod network_operator;
mod oauth;
mod object;
mod oidc;
mod olm;
mod plan;
mod pull_secrets;
mod rbac;
mod registry;
mod service_monitor;
mod storage;
mod webhooks;
mod write;

pub use aggregated_apis::SERVERS;
pub use error::Error;
pub(crate) use global_config::documents;
pub use input::{Guest, Input, Settings};
pub use kinds::KINDS;
#[cfg(test)]
pub(crate) use metrics_forwarder::haproxy as forwarder_configuration;
pub use object::{Desired, Key, MANAGED, Mode, Object};
pub use plan::{Write, plan};
pub use write::{WriteError, Writer};

const CONFIG: &str = "config.openshift.io/v1";
/// Kinds of configuration in the hosted cluster that the control plane follows, and the ConfigMaps with their copies.
pub const OBSERVED: [(&str, &str); 2] = [
    ("Build", "observed-config-build"),
    ("Project", "observed-config-project"),
];

/// The kind with the feature set, which kas-bootstrap writes.
pub(crate) const FEATURES: &str = "FeatureGate";

type Builder = fn(&Input<'_>, &mut Desired);

/// A step of a pass: its number, name, and what builds its objects.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// Its place in the order. Several subjects may share one.
    pub number: u8,
    /// Its subject, for logs.
    pub name: &'static str,
    builder: Builder,
}

/// All steps in order: objects of a later step may need those of an earlier one.
pub const STEPS: [Step; 32] = [
    step(1, "CustomResourceDefinitions", crds::build),
    step(2, "API server endpoints", kubernetes_endpoints::build),
    step(3, "admission policies", admission_policies::build),
    step(4, "installation", installation::build),
    step(5, "alerts", alerts::build),
    step(6, "ClusterVersion", cluster_version::build),
    step(7, "ClusterOperators", cluster_operators::build),
    step(8, "global configuration", global_config::build),
    step(9, "namespaces", namespaces::build),
    step(10, "RBAC", rbac::build),
    step(11, "image registry", registry::build),
    step(11, "ingress", ingress::build),
    step(11, "OIDC clients", oidc::build),
    step(12, "certificate authorities", authorities::build),
    step(12, "konnectivity agent", konnectivity::build),
    step(12, "connection checker", connection_checker::build),
    step(12, "aggregated APIs", aggregated_apis::build),
    step(12, "kubeadmin", kubeadmin::build),
    step(12, "API server metrics", service_monitor::build),
    step(12, "metrics forwarder", metrics_forwarder::build),
    step(13, "network operator", network_operator::build),
    step(13, "pull secrets", pull_secrets::build),
    step(13, "CA bundles", ca_bundles::build),
    step(13, "OAuth clients", oauth::build),
    step(13, "cloud credentials", cloud_credentials::build),
    step(13, "cloud configuration", cloud_config::build),
    step(14, "OLM", olm::build),
    step(15, "kubelet configuration", kubelet_configs::build),
    step(15, "storage", storage::build),
    step(15, "KubeVirt CSI driver", kubevirt_csi::build),
    step(17, "cloud webhooks", webhooks::build),
    step(18, "global pull secret", global_pull_secret::build),
];

/// Objects of earlier releases. They are deleted once, after the ClusterVersion has reached the release.
pub const LEGACY: Step = step(16, "objects of earlier releases", legacy::build);

const fn step(number: u8, name: &'static str, builder: Builder) -> Step {
    Step {
        number,
        name,
        builder,
    }
}

/// Objects of others that are read, and that do not have the label of managed objects.
pub fn objects_of_others() -> Vec<Key> {
    let kinds = OBSERVED.iter().map(|(kind, _)| *kind).chain([FEATURES]);
    let configuration = kinds.map(|kind| Key::new(CONFIG, kind, "", "cluster"));
    configuration
        .chain([global_pull_secret::additional()])
        .collect()
}

// === impl Step ===

impl Step {
    /// Builds the objects of the step.
    pub fn build(&self, input: &Input<'_>) -> Desired {
        let mut desired = Desired::default();
        (self.builder)(input, &mut desired);
        desired
    }
}
