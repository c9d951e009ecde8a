//! What a hosted cluster is made of on the management cluster: pure. The same facts give the same objects.

mod certificate;
mod cluster;
mod control_plane;
mod namespace;
mod network_policies;
mod operators;
mod secrets;

use kube::api::ApiResource;
use serde_json::{Value, json};

use super::facts::Facts;
use super::names;
use super::operator_image;
use super::wanted::Wanted;
pub(crate) use certificate::webhook_tls;
pub(crate) use cluster::capi_cluster;
pub(crate) use control_plane::{paused_control_plane, spec as control_plane_spec};

/// What is done in one go, and in which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    Namespace,
    PlatformCredentials,
    PullSecret,
    SecretEncryption,
    References,
    ControlPlane,
    Handover,
    Rights,
    Operators,
    NetworkPolicies,
}

/// What a failed step means for the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// Steps that can be blocked are left out after it.
    Critical,
    /// The others go on.
    NonCritical,
    /// It is left out after a critical step has failed.
    Blockable,
}

/// The objects of one step.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) step: Step,
    pub(crate) objects: Vec<Wanted>,
    /// Objects that must not be there, by kind and name, in the control plane's namespace.
    pub(crate) surplus: Vec<(ApiResource, String)>,
}

/// Why nothing can be built.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// An image that the release lacks.
    #[error(transparent)]
    Image(#[from] payload::MissingImage),
    /// A manifest that does not go with the cluster.
    #[error("cannot render the operators of the control plane")]
    Render(#[from] control_plane_component::Error),
    /// The release was not read.
    #[error("the release is not known")]
    NoRelease,
    /// There is no control-plane-operator for it.
    #[error(transparent)]
    Operator(#[from] operator_image::Unfit),
}

// === impl Step ===

impl Step {
    /// What a failure of it means.
    pub(crate) fn class(self) -> Class {
        match self {
            Self::Namespace
            | Self::PlatformCredentials
            | Self::PullSecret
            | Self::SecretEncryption
            | Self::ControlPlane => Class::Critical,
            Self::References => Class::NonCritical,
            Self::Handover | Self::Rights | Self::Operators | Self::NetworkPolicies => {
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
            Self::Rights => "rights",
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
        // The object on the infrastructure comes before the Cluster that refers to it.
        (Step::ControlPlane, control_plane_chain(facts)),
        (Step::Handover, secrets::handover(facts)),
        (Step::Rights, operators.rights),
        (Step::Operators, operators.workloads),
        (Step::NetworkPolicies, network_policies::build(facts)),
    ];
    let mut plan = plan.map(|(step, objects)| Planned {
        step,
        objects: objects.into_iter().map(|it| marked(facts, it)).collect(),
        surplus: Vec::new(),
    });
    for planned in &mut plan {
        match planned.step {
            Step::Operators => planned.surplus.clone_from(&operators.surplus),
            Step::NetworkPolicies => {
                planned.surplus = network_policies::surplus(&planned.objects);
            }
            Step::Namespace
            | Step::PlatformCredentials
            | Step::PullSecret
            | Step::SecretEncryption
            | Step::References
            | Step::ControlPlane
            | Step::Handover
            | Step::Rights => {}
        }
    }
    Ok(plan.into())
}

fn control_plane_chain(facts: &Facts) -> Vec<Wanted> {
    let mut chain = vec![control_plane::control_plane(facts)];
    chain.extend(cluster::chain(facts));
    chain
}

/// Where the API server is reached, as Cluster API writes it.
pub(crate) fn endpoint(facts: &Facts) -> Option<Value> {
    let status = facts.control_plane.as_ref()?.status.as_ref()?;
    let endpoint = status.control_plane_endpoint.as_ref()?;
    Some(json!({ "host": endpoint.host, "port": endpoint.port }))
}

/// By this an object is known for one of the cluster's, and by the label it is watched.
fn marked(facts: &Facts, wanted: Wanted) -> Wanted {
    // It is read-only for all clusters together.
    if wanted.name() == names::CRD_READER {
        return wanted;
    }
    let owner = facts.id.to_string();
    wanted
        .annotated(names::CLUSTER, &owner)
        .labelled(names::MANAGED_BY, names::OPERATOR)
}

#[cfg(test)]
mod tests;
