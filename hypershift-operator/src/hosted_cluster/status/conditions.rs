//! The conditions of a HostedCluster: its own, and those that its control plane tells.

use api::conditions::{ClusterCondition, CommonReason, ReadCondition as _, Status, find};
use api::hypershift::v1beta1::etcd::EtcdManagementType;
use api::hypershift::v1beta1::hosted_cluster::status::HostedClusterStatus;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Value, json};

use super::version::whole_second;
use super::{Outcome, control_plane_conditions, progress};
use crate::hosted_cluster::references::Purpose;
use crate::hosted_cluster::validate::{Verdict, private_access};
use crate::pause::Pause;

/// Conditions that are the control plane's, and that every cluster has.
const COPIED: [ClusterCondition; 13] = [
    ClusterCondition::EtcdAvailable,
    ClusterCondition::KubeApiServerAvailable,
    ClusterCondition::InfrastructureReady,
    ClusterCondition::ExternalDnsReachable,
    ClusterCondition::ValidHostedControlPlaneConfiguration,
    ClusterCondition::ValidReleaseInfo,
    ClusterCondition::ConfigOperatorReconciliationSucceeded,
    ClusterCondition::ClusterVersionAvailable,
    ClusterCondition::ClusterVersionProgressing,
    ClusterCondition::ClusterVersionUpgradeable,
    ClusterCondition::ClusterVersionReleaseAccepted,
    ClusterCondition::ClusterVersionRetrievedUpdates,
    ClusterCondition::DataPlaneConnectionAvailable,
];
/// Conditions that are the control plane's, where it has them.
const COPIED_IF_TOLD: [ClusterCondition; 13] = [
    ClusterCondition::ControlPlaneConnectionAvailable,
    ClusterCondition::ValidIdpConfiguration,
    ClusterCondition::ValidAwsIdentityProvider,
    ClusterCondition::ValidAwsKmsConfig,
    ClusterCondition::ValidAzureKmsConfig,
    ClusterCondition::AwsDefaultSecurityGroupCreated,
    ClusterCondition::AwsDefaultSecurityGroupDeleted,
    ClusterCondition::CloudResourcesDestroyed,
    ClusterCondition::EtcdDataEncryptionUpToDate,
    ClusterCondition::EtcdBackupSucceeded,
    ClusterCondition::HostedClusterRestoredFromBackup,
    ClusterCondition::KubeVirtNodesLiveMigratable,
    ClusterCondition::ValidKubeVirtInfraNetworkMtu,
];
/// The reason of a condition about what no controller of this version does.
const NOT_SUPPORTED: &str = "NotSupported";
/// What an object may say in a condition.
const LONGEST_MESSAGE: usize = 32_768;

/// A condition, without its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) about: &'static str,
    pub(crate) status: Status,
    pub(crate) reason: String,
    pub(crate) message: String,
}

// === impl Told ===

impl Told {
    pub(crate) fn new(
        about: ClusterCondition,
        status: Status,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            about: about.as_str(),
            status,
            reason: reason.into(),
            message: message.into(),
        }
    }

    /// All is well.
    pub(crate) fn expected(about: ClusterCondition, status: Status) -> Self {
        Self::new(about, status, CommonReason::AsExpected.as_str(), "")
    }

    fn of(about: ClusterCondition, verdict: &Verdict) -> Self {
        match verdict {
            Verdict::Good => Self::expected(about, Status::True),
            Verdict::Bad { reason, message } => Self::new(about, Status::False, *reason, message),
        }
    }

    /// As it is written: the time is that of the last change of the status.
    pub(crate) fn condition(
        &self,
        old: &[Condition],
        generation: i64,
        now: jiff::Timestamp,
    ) -> Value {
        let old = find(old, self.about).filter(|old| old.status() == self.status);
        let since = old.map_or_else(|| whole_second(now), |old| old.last_transition_time.0);
        let message: String = self.message.chars().take(LONGEST_MESSAGE / 4).collect();
        json!({
            "type": self.about,
            "status": self.status.as_str(),
            "reason": self.reason,
            "message": message,
            "lastTransitionTime": since,
            "observedGeneration": generation,
        })
    }
}

/// All conditions that this operator writes.
pub(super) fn conditions(outcome: &Outcome<'_>, old: Option<&HostedClusterStatus>) -> Value {
    let old = old.map(|it| it.conditions.as_slice()).unwrap_or_default();
    let generation = outcome
        .facts
        .cluster
        .metadata
        .generation
        .unwrap_or_default();
    let told = told(outcome);
    told.iter()
        .map(|it| it.condition(old, generation, outcome.now))
        .collect()
}

/// All conditions, without their times.
pub(super) fn told(outcome: &Outcome<'_>) -> Vec<Told> {
    let verdicts = outcome.verdicts;
    let mut told = vec![
        progress::available(outcome),
        progress::progressing(outcome),
        progress::degraded(outcome),
        reconciliation(outcome),
        active(outcome.pause),
        Told::of(
            ClusterCondition::ValidConfiguration,
            &verdicts.configuration,
        ),
        Told::of(
            ClusterCondition::SupportedHostedCluster,
            &verdicts.supported,
        ),
        release(outcome),
        succeeding(outcome),
    ];
    let credentials = verdicts.credentials.as_ref();
    told.extend(credentials.map(|it| Told::of(ClusterCondition::PlatformCredentialsFound, it)));
    told.extend(progress::ignition(outcome));
    told.extend(unmanaged_etcd(outcome));
    told.extend(private_endpoints(outcome));
    told.extend(private_network(outcome));
    told.extend(copied(outcome));
    told
}

/// `ValidReleaseImage`: unknown while the image is being read.
fn release(outcome: &Outcome<'_>) -> Told {
    let about = ClusterCondition::ValidReleaseImage;
    match outcome.facts.in_progress() {
        Some(error) => {
            let message = format!("Waiting for image {} to be read", error.image());
            Told::new(about, Status::Unknown, error.condition_reason(), message)
        }
        None => Told::of(about, &outcome.verdicts.release),
    }
}

/// `ReconciliationSucceeded`.
fn reconciliation(outcome: &Outcome<'_>) -> Told {
    let about = ClusterCondition::ReconciliationSucceeded;
    if outcome.failures.is_empty() {
        return Told::new(about, Status::True, "ReconciliationSucceeded", "");
    }
    let reason = CommonReason::ReconciliationError.as_str();
    Told::new(about, Status::False, reason, outcome.failures.join("; "))
}

/// `ReconciliationActive`.
fn active(pause: &Pause) -> Told {
    let about = ClusterCondition::ReconciliationActive;
    match pause {
        Pause::Active | Pause::Over => Told::expected(about, Status::True),
        Pause::Indefinite => {
            let message = "paused by spec.pausedUntil until it is removed";
            Told::new(about, Status::False, "ReconciliationPaused", message)
        }
        Pause::Until(until) => {
            let message = format!("paused by spec.pausedUntil until {until}");
            Told::new(about, Status::False, "ReconciliationPaused", message)
        }
        Pause::Unreadable(text) => {
            let message = format!(
                "spec.pausedUntil is {text:?}, which is no time such as 2030-01-31T12:00:00Z: it is not heeded"
            );
            Told::new(about, Status::True, "InvalidPausedUntilValue", message)
        }
    }
}

/// The guest tells when it fails; here it is told when it succeeds.
fn succeeding(outcome: &Outcome<'_>) -> Told {
    let about = ClusterCondition::ClusterVersionSucceeding;
    let conditions = control_plane_conditions(outcome.facts.control_plane.as_ref());
    match find(conditions, ClusterCondition::ClusterVersionFailing) {
        None => unknown(about),
        Some(failing) => {
            let status = match failing.status() {
                Status::True => Status::False,
                Status::False => Status::True,
                Status::Unknown => Status::Unknown,
            };
            Told::new(about, status, &failing.reason, &failing.message)
        }
    }
}

/// Etcd that somebody else runs is described in full once the Secret for it is there.
fn unmanaged_etcd(outcome: &Outcome<'_>) -> Option<Told> {
    let about = ClusterCondition::UnmanagedEtcdAvailable;
    let facts = outcome.facts;
    if facts.cluster.spec.etcd.management_type != EtcdManagementType::Unmanaged {
        return None;
    }
    let mut referenced = facts.referenced.iter();
    let (reference, found) = referenced.find(|(it, _)| it.purpose == Purpose::EtcdClient)?;
    if reference.keys.iter().all(|key| found.has(key)) {
        return Some(Told::expected(about, Status::True));
    }
    let message = format!(
        "the Secret {} is not complete: see ValidConfiguration",
        reference.name
    );
    Some(Told::new(
        about,
        Status::False,
        "UnmanagedEtcdMisconfigured",
        message,
    ))
}

/// Nothing creates the endpoints of a private cluster on AWS.
fn private_endpoints(outcome: &Outcome<'_>) -> Option<Told> {
    let about = ClusterCondition::AwsEndpointServiceAvailable;
    let access = private_access(outcome.facts)?;
    let message = format!(
        "spec.platform.aws.endpointAccess is {access}, and this version does not create AWSEndpointServices; those that \
         exist are left as they are. Set it to Public, or keep them up to date by other means"
    );
    Some(Told::new(about, Status::False, NOT_SUPPORTED, message))
}

/// The policy for virtual machines is written on the management cluster only.
fn private_network(outcome: &Outcome<'_>) -> Option<Told> {
    let about = ClusterCondition::ValidKubeVirtInfraNetworkPolicyRbac;
    let platform = &outcome.facts.cluster.spec.platform;
    let credentials = platform.kubevirt.as_ref()?.credentials.as_ref()?;
    let namespace = &credentials.infra_namespace;
    let message = format!(
        "this version does not create NetworkPolicy virt-launcher on an external infrastructure cluster, and virtual \
         machines can reach its networks: create the policy in its namespace {namespace} (docs/clusters.md)"
    );
    Some(Told::new(about, Status::False, NOT_SUPPORTED, message))
}

fn copied(outcome: &Outcome<'_>) -> Vec<Told> {
    let conditions = control_plane_conditions(outcome.facts.control_plane.as_ref());
    let of = |about: ClusterCondition| {
        let found = find(conditions, about)?;
        Some(Told::new(
            about,
            found.status(),
            &found.reason,
            &found.message,
        ))
    };
    let all = COPIED
        .iter()
        .map(|&about| of(about).unwrap_or_else(|| unknown(about)));
    all.chain(COPIED_IF_TOLD.iter().filter_map(|&about| of(about)))
        .collect()
}

fn unknown(about: ClusterCondition) -> Told {
    let reason = CommonReason::StatusUnknown.as_str();
    Told::new(
        about,
        Status::Unknown,
        reason,
        "the control plane has not said anything yet",
    )
}
