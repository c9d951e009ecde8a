//! Renders the objects of a HostedCluster on the management cluster: pure and deterministic.

mod certificate;
mod cluster;
mod control_plane;
mod namespace;
mod network_policies;
mod operators;
mod secrets;

use kube::api::ApiResource;

use super::operator_image;
use crate::desired::Desired;
use crate::facts::Facts;
use crate::names;
use crate::platform::Outside;
pub(crate) use certificate::webhook_tls;
pub(crate) use cluster::capi_cluster;
pub(crate) use control_plane::{paused_control_plane, spec as control_plane_spec};
pub(crate) use network_policies::virtual_machines;

/// The steps, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    Namespace,
    PlatformCredentials,
    PullSecret,
    SecretEncryption,
    References,
    ControlPlane,
    Handover,
    Rbac,
    Operators,
    NetworkPolicies,
}

/// How a failed step affects the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// Steps that can be blocked are left out after it.
    Critical,
    /// Other steps continue.
    NonCritical,
    /// It is left out after a critical step has failed.
    Blockable,
}

/// The objects of one step.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) step: Step,
    pub(crate) objects: Vec<Desired>,
    /// Objects that must not be there, by kind and name, in the control plane's namespace.
    pub(crate) obsolete: Vec<(ApiResource, String)>,
    /// Objects of earlier versions outside of it, which are deleted if they name the cluster.
    pub(crate) outdated: Vec<Outside>,
}

/// Why rendering failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// An image that the release lacks.
    #[error(transparent)]
    Image(#[from] payload::MissingImage),
    /// A manifest that does not go with the cluster.
    #[error("failed to render the control plane operators")]
    Render(#[from] control_plane_component::Error),
    /// The release was not read.
    #[error("the release is not known")]
    NoRelease,
    /// No control-plane-operator is available for it.
    #[error(transparent)]
    Operator(#[from] operator_image::Unfit),
}

// === impl Step ===

impl Step {
    /// The effect of its failure.
    pub(crate) fn class(self) -> Class {
        match self {
            Self::Namespace
            | Self::PlatformCredentials
            | Self::PullSecret
            | Self::SecretEncryption
            | Self::ControlPlane => Class::Critical,
            Self::References => Class::NonCritical,
            Self::Handover | Self::Rbac | Self::Operators | Self::NetworkPolicies => {
                Class::Blockable
            }
        }
    }

    /// Its name, for errors and metrics.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Namespace => "namespace",
            Self::PlatformCredentials => "platform-credentials",
            Self::PullSecret => "pull-secret",
            Self::SecretEncryption => "secret-encryption",
            Self::References => "references",
            Self::ControlPlane => "control-plane",
            Self::Handover => "handover",
            Self::Rbac => "rbac",
            Self::Operators => "operators",
            Self::NetworkPolicies => "network-policies",
        }
    }
}

/// Builds everything, in the order in which it is applied.
pub(crate) fn build(facts: &Facts) -> Result<Vec<Planned>, Error> {
    let operators = operators::build(facts)?;
    let plan = [
        (Step::Namespace, vec![namespace::namespace(facts)]),
        (Step::PlatformCredentials, secrets::platform(facts)),
        (Step::PullSecret, secrets::pull_secret(facts)),
        (Step::SecretEncryption, secrets::encryption(facts)),
        (Step::References, secrets::references(facts)),
        // The infrastructure object comes before the Cluster that refers to it.
        (Step::ControlPlane, control_plane_chain(facts)),
        (Step::Handover, secrets::handover(facts)),
        (Step::Rbac, operators.rbac),
        (Step::Operators, operators.workloads),
        (Step::NetworkPolicies, network_policies::build(facts)),
    ];
    let mut plan = plan.map(|(step, objects)| Planned {
        step,
        objects: objects
            .into_iter()
            .map(|it| with_owner(facts, it))
            .collect(),
        obsolete: Vec::new(),
        outdated: Vec::new(),
    });
    for planned in &mut plan {
        match planned.step {
            Step::Operators => planned.obsolete.clone_from(&operators.obsolete),
            Step::Rbac => planned.outdated.clone_from(&operators.outdated),
            Step::NetworkPolicies => {
                planned.obsolete = network_policies::obsolete(&planned.objects);
            }
            Step::Namespace
            | Step::PlatformCredentials
            | Step::PullSecret
            | Step::SecretEncryption
            | Step::References
            | Step::ControlPlane
            | Step::Handover => {}
        }
    }
    Ok(plan.into())
}

fn control_plane_chain(facts: &Facts) -> Vec<Desired> {
    let mut chain = vec![control_plane::control_plane(facts)];
    chain.extend(cluster::chain(facts));
    chain
}

/// Adds the annotation with the owner, and the label by which the object is watched.
fn with_owner(facts: &Facts, desired: Desired) -> Desired {
    // Without the label it would not be in the watch, and would be read or written in each reconcile.
    let desired = desired.labelled(names::MANAGED_BY, names::OPERATOR);
    // It is read-only for all clusters together.
    if desired.name() == names::CRD_READER {
        return desired;
    }
    desired.annotated(names::CLUSTER, &facts.id.to_string())
}

#[cfg(test)]
mod tests;
