//! The conditions of a HostedCluster: its own, and those copied from its control plane.

use api::conditions::{ClusterCondition, CommonReason, ReadCondition as _, Status, find};
use api::hypershift::v1beta1::etcd::EtcdManagementType;
use api::hypershift::v1beta1::hosted_cluster::status::HostedClusterStatus;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Value, json};

use super::version::whole_second;
use super::{Outcome, auto_node, control_plane_conditions, gcp, private_links, progress, proxy};
use crate::facts::references::Purpose;
use crate::facts::{Facts, InfraPolicy, OidcDocuments};
use crate::hosted_cluster::oidc;
use crate::hosted_cluster::validate::Finding;
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
const COPIED_IF_PRESENT: [ClusterCondition; 12] = [
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
    ClusterCondition::ValidKubeVirtInfraNetworkMtu,
];
/// The longest message of a condition.
const LONGEST_MESSAGE: usize = 32_768;

/// A condition, without its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConditionUpdate {
    pub(crate) about: &'static str,
    pub(crate) status: Status,
    pub(crate) reason: String,
    pub(crate) message: String,
}

// === impl ConditionUpdate ===

impl ConditionUpdate {
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

    fn of(about: ClusterCondition, finding: &Finding) -> Self {
        match finding {
            Finding::Good => Self::expected(about, Status::True),
            Finding::Bad { reason, message } => Self::new(about, Status::False, *reason, message),
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
    let updates = updates(outcome);
    updates
        .iter()
        .map(|it| it.condition(old, generation, outcome.now))
        .collect()
}

/// All conditions, without their times.
pub(super) fn updates(outcome: &Outcome<'_>) -> Vec<ConditionUpdate> {
    let findings = outcome.findings;
    let mut updates = vec![
        progress::available(outcome),
        progress::progressing(outcome),
        progress::degraded(outcome),
        reconciliation(outcome),
        active(outcome.pause),
        ConditionUpdate::of(
            ClusterCondition::ValidConfiguration,
            &findings.configuration,
        ),
        ConditionUpdate::of(
            ClusterCondition::SupportedHostedCluster,
            &findings.supported,
        ),
        release(outcome),
        succeeding(outcome),
        ConditionUpdate::of(
            ClusterCondition::PlatformCredentialsFound,
            &findings.credentials,
        ),
    ];
    updates.extend(progress::ignition(outcome));
    updates.extend(unmanaged_etcd(outcome));
    updates.extend(private_links::conditions(outcome.facts));
    updates.extend(proxy::condition(outcome.facts, outcome.now));
    updates.extend(gcp::conditions(outcome));
    updates.extend(auto_node::condition(outcome.facts));
    updates.extend(oidc_documents(outcome.facts));
    updates.extend(private_network(outcome));
    updates.extend(live_migration(outcome));
    updates.extend(copied(outcome));
    updates
}

/// `ValidReleaseImage`: unknown while the image is being read.
fn release(outcome: &Outcome<'_>) -> ConditionUpdate {
    let about = ClusterCondition::ValidReleaseImage;
    match outcome.facts.in_progress() {
        Some(error) => {
            let message = format!("Waiting for image {} to be read", error.image());
            ConditionUpdate::new(about, Status::Unknown, error.condition_reason(), message)
        }
        None => ConditionUpdate::of(about, &outcome.findings.release),
    }
}

/// `ReconciliationSucceeded`.
fn reconciliation(outcome: &Outcome<'_>) -> ConditionUpdate {
    let about = ClusterCondition::ReconciliationSucceeded;
    if outcome.failures.is_empty() {
        return ConditionUpdate::new(about, Status::True, "ReconciliationSucceeded", "");
    }
    let reason = CommonReason::ReconciliationError.as_str();
    ConditionUpdate::new(about, Status::False, reason, outcome.failures.join("; "))
}

/// `ReconciliationActive`.
fn active(pause: &Pause) -> ConditionUpdate {
    let about = ClusterCondition::ReconciliationActive;
    match pause {
        Pause::Active | Pause::Over => ConditionUpdate::expected(about, Status::True),
        Pause::Indefinite => {
            let message = "paused by spec.pausedUntil until it is removed";
            ConditionUpdate::new(about, Status::False, "ReconciliationPaused", message)
        }
        Pause::Until(until) => {
            let message = format!("paused by spec.pausedUntil until {until}");
            ConditionUpdate::new(about, Status::False, "ReconciliationPaused", message)
        }
        Pause::Unreadable(text) => {
            let message = format!(
                "spec.pausedUntil {text:?} is not a valid time (for example 2030-01-31T12:00:00Z) and is ignored"
            );
            ConditionUpdate::new(about, Status::True, "InvalidPausedUntilValue", message)
        }
    }
}

/// The guest reports failures; this condition reports success.
fn succeeding(outcome: &Outcome<'_>) -> ConditionUpdate {
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
            ConditionUpdate::new(about, status, &failing.reason, &failing.message)
        }
    }
}

/// Unmanaged etcd is configured once its Secret is complete.
fn unmanaged_etcd(outcome: &Outcome<'_>) -> Option<ConditionUpdate> {
    let about = ClusterCondition::UnmanagedEtcdAvailable;
    let facts = outcome.facts;
    if facts.cluster.spec.etcd.management_type != EtcdManagementType::Unmanaged {
        return None;
    }
    let mut referenced = facts.referenced.iter();
    let (reference, found) = referenced.find(|(it, _)| it.purpose == Purpose::EtcdClient)?;
    if reference.keys.iter().all(|key| found.has(key)) {
        return Some(ConditionUpdate::expected(about, Status::True));
    }
    let message = format!(
        "Secret {} is incomplete: see condition ValidConfiguration",
        reference.name
    );
    Some(ConditionUpdate::new(
        about,
        Status::False,
        "UnmanagedEtcdMisconfigured",
        message,
    ))
}

/// The documents by which AWS validates tokens.
fn oidc_documents(facts: &Facts) -> Option<ConditionUpdate> {
    let about = ClusterCondition::ValidOidcConfiguration;
    if !oidc::are_stored(&facts.cluster) {
        return None;
    }
    if oidc::is_recorded(&facts.cluster) {
        return Some(ConditionUpdate::expected(about, Status::True));
    }
    match &facts.oidc_documents {
        Some(OidcDocuments::Stored) => Some(ConditionUpdate::expected(about, Status::True)),
        Some(OidcDocuments::Failed(problem)) => Some(ConditionUpdate::new(
            about,
            Status::False,
            "OIDCConfigurationInvalid",
            problem,
        )),
        // Machines of a cluster whose documents others have stored would count as lost if this were false.
        Some(OidcDocuments::Unconfigured) => Some(ConditionUpdate::new(
            about,
            Status::Unknown,
            CommonReason::StatusUnknown.as_str(),
            "this operator stores no OIDC documents: AWS accepts tokens of the cluster only if they are at spec.issuerURL. \
             For it to store them, the administrator of the management cluster runs the operator with \
             --oidc-storage-provider-s3-bucket-name, -region and -credentials",
        )),
        None => unchanged(facts, about),
    }
}

/// The NetworkPolicy of virtual machines on another infrastructure cluster.
fn private_network(outcome: &Outcome<'_>) -> Option<ConditionUpdate> {
    let about = ClusterCondition::ValidKubeVirtInfraNetworkPolicyRbac;
    let platform = &outcome.facts.cluster.spec.platform;
    let credentials = platform.kubevirt.as_ref()?.credentials.as_ref()?;
    let namespace = &credentials.infra_namespace;
    // Nothing is applied while the HostedCluster is paused, or invalid.
    let Some(policy) = &outcome.facts.infra_policy else {
        return unchanged(outcome.facts, about);
    };
    let Some((reason, problem)) = policy.problem() else {
        return Some(ConditionUpdate::expected(about, Status::True));
    };
    let message = match policy {
        InfraPolicy::Applied | InfraPolicy::WithoutNetworks(_) => format!(
            "{problem}. Virtual machines can reach its networks: allow the user of the kubeconfig to get it, or block this \
             with a NetworkPolicy in namespace {namespace} (docs/clusters.md)"
        ),
        InfraPolicy::Refused(_) => format!(
            "{problem}. They can reach its networks: allow the user of the kubeconfig to write NetworkPolicies in namespace \
             {namespace}"
        ),
    };
    Some(ConditionUpdate::new(about, Status::False, reason, message))
}

/// What the NodePools report about their virtual machines.
fn live_migration(outcome: &Outcome<'_>) -> Option<ConditionUpdate> {
    let about = ClusterCondition::KubeVirtNodesLiveMigratable;
    let facts = outcome.facts;
    let Some(pools) = &facts.live_migration else {
        // They are not known yet.
        return unchanged(facts, about);
    };
    if pools.is_empty() {
        return None;
    }
    let not = pools.iter().filter(|(_, is_possible)| !**is_possible);
    let not: Vec<_> = not.map(|(pool, _)| pool.as_str()).collect();
    if not.is_empty() {
        return Some(ConditionUpdate::expected(about, Status::True));
    }
    let message = format!(
        "virtual machines of these NodePools cannot be migrated live, and their condition of the same type says why: {}",
        not.join(", ")
    );
    let reason = "KubeVirtNodesNotLiveMigratable";
    Some(ConditionUpdate::new(about, Status::False, reason, message))
}

/// A condition about something that this reconcile has not looked at, as it is.
pub(super) fn unchanged(facts: &Facts, about: ClusterCondition) -> Option<ConditionUpdate> {
    let status = facts.cluster.status.as_ref()?;
    let old = find(&status.conditions, about)?;
    let (reason, message) = (&old.reason, &old.message);
    Some(ConditionUpdate::new(about, old.status(), reason, message))
}

fn copied(outcome: &Outcome<'_>) -> Vec<ConditionUpdate> {
    let conditions = control_plane_conditions(outcome.facts.control_plane.as_ref());
    let of = |about: ClusterCondition| {
        let found = find(conditions, about)?;
        Some(ConditionUpdate::new(
            about,
            found.status(),
            &found.reason,
            &found.message,
        ))
    };
    let all = COPIED
        .iter()
        .map(|&about| of(about).unwrap_or_else(|| unknown(about)));
    all.chain(COPIED_IF_PRESENT.iter().filter_map(|&about| of(about)))
        .collect()
}

fn unknown(about: ClusterCondition) -> ConditionUpdate {
    let reason = CommonReason::StatusUnknown.as_str();
    ConditionUpdate::new(
        about,
        Status::Unknown,
        reason,
        "Waiting for the control plane to report this condition",
    )
}
