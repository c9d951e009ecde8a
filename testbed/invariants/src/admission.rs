//! Configuration in the hosted cluster: policies protect what belongs to the HostedCluster, and nothing else.

use serde_json::{Value, json};

use crate::{Finding, Guest, Invariant, Observed, text};

/// The policies for configuration, its mirrors, infrastructure and tuning.
const POLICIES: [&str; 5] = ["config", "icsp", "infra", "mirror", "ntomirroredconfigmaps"];
/// How the API server names a policy that refuses a change.
const REFUSED: &str = "ValidatingAdmissionPolicy '";

/// A change of configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The audit profile of the API server.
    AuditProfile,
    /// The status of the network, which an operator in the hosted cluster writes.
    NetworkStatus,
    /// The sources of OLM's catalogs.
    CatalogSources,
}

/// A change that the hosted cluster's administrator has tried, without making it.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// What was tried.
    pub change: Change,
    /// Why it was refused, if it was.
    pub refusal: Option<String>,
}

// === impl Change ===

impl Change {
    /// All of them.
    pub const ALL: [Self; 3] = [
        Self::AuditProfile,
        Self::NetworkStatus,
        Self::CatalogSources,
    ];

    /// The path of the object.
    pub fn path(self) -> &'static str {
        match self {
            Self::AuditProfile => "/apis/config.openshift.io/v1/apiservers/cluster",
            Self::NetworkStatus => "/apis/config.openshift.io/v1/networks/cluster",
            Self::CatalogSources => "/apis/config.openshift.io/v1/operatorhubs/cluster",
        }
    }

    /// A merge patch that changes the object.
    pub fn patch(self, live: &Value) -> Value {
        match self {
            Self::AuditProfile => {
                let is_none = live["spec"]["audit"]["profile"] == "None";
                let profile = if is_none { "Default" } else { "None" };
                json!({ "spec": { "audit": { "profile": profile } } })
            }
            Self::NetworkStatus => {
                let is_used = live["status"]["clusterNetworkMTU"] == 1300;
                json!({ "status": { "clusterNetworkMTU": if is_used { 1301 } else { 1300 } } })
            }
            Self::CatalogSources => {
                let is_disabled = live["spec"]["disableAllDefaultSources"] == true;
                json!({ "spec": { "disableAllDefaultSources": !is_disabled } })
            }
        }
    }

    /// Whether the administrator of this cluster may do it.
    fn is_allowed(self, cluster: &Value) -> bool {
        match self {
            Self::AuditProfile => false,
            Self::NetworkStatus => true,
            Self::CatalogSources => text(&cluster["spec"]["olmCatalogPlacement"]) == "guest",
        }
    }
}

pub(crate) fn policies(observed: &Observed) -> Vec<Finding> {
    let Some(guest) = &observed.guest else {
        return Vec::new();
    };
    let mut findings = missing(guest);
    if let Some(cluster) = &observed.hosted_cluster {
        let wrong = Change::ALL.iter().filter_map(|change| {
            let problem = judge(*change, guest, cluster)?;
            let object = format!("hosted cluster, {change:?}");
            Some(Finding::new(Invariant::AdmissionPolicies, object, problem))
        });
        findings.extend(wrong);
    }
    findings
}

fn missing(guest: &Guest) -> Vec<Finding> {
    let found = |name: &&&str| {
        let mut policies = guest.admission_policies.iter();
        policies.any(|it| it["metadata"]["name"] == **name)
    };
    let missing = POLICIES.iter().filter(|name| !found(name));
    missing
        .map(|name| {
            let object = format!("ValidatingAdmissionPolicy {name}");
            Finding::new(Invariant::AdmissionPolicies, object, "it is missing")
        })
        .collect()
}

/// What is wrong with the answer to a change.
fn judge(change: Change, guest: &Guest, cluster: &Value) -> Option<String> {
    let attempt = guest.attempts.iter().find(|it| it.change == change);
    let Some(attempt) = attempt else {
        return Some("it was not tried".to_owned());
    };
    match (change.is_allowed(cluster), &attempt.refusal) {
        (true, None) => None,
        (true, Some(refusal)) => Some(format!("it is refused: {refusal}")),
        (false, None) => Some("it is admitted".to_owned()),
        (false, Some(refusal)) if refusal.contains(REFUSED) => None,
        (false, Some(refusal)) => Some(format!("something else refuses it: {refusal}")),
    }
}
