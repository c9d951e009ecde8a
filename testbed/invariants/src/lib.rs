//! What holds of every hosted cluster, whatever a test is about: the assertions that the end-to-end tests of HyperShift
//! make of each cluster.
//!
//! Pure: a caller reads the objects, or renders them, into [`Observed`], and [`findings`] gives what is wrong with them.
//! What was not read is not judged. `testbed::hosted` reads the objects of clusters that run; the tests of components
//! pass what they render.
//!
//! The exceptions of the list are in one table, each with its reason.

mod access;
mod admission;
mod conditions;
mod containers;
mod exceptions;
mod known;
mod labels;
mod metrics;
mod network;
mod pod;
mod scheduling;
mod volumes;
mod workloads;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

pub use admission::{Attempt, Change};
pub use metrics::left as metrics_left;
pub use pod::is_exempt;

/// A cluster, as far as it was read. Objects are JSON, with `apiVersion` and `kind`.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// The HostedCluster.
    pub hosted_cluster: Option<Value>,
    /// Its NodePools, if they were read.
    pub node_pools: Vec<Value>,
    /// Whether the pools have had time for their nodes. Before, what depends on workers is not judged.
    pub has_settled: bool,
    /// The namespace of the control plane.
    pub namespace: Value,
    /// Workloads, pods, Routes and NetworkPolicies in that namespace.
    pub objects: Vec<Value>,
    /// Pods in the namespace of the operators.
    pub operator_pods: Vec<Value>,
    /// The `PriorityClasses` of the management cluster.
    pub priority_classes: Vec<Value>,
    /// Addresses of the management cluster's API server, if NetworkPolicies are to keep pods from them.
    pub management_api: Vec<String>,
    /// The hosted cluster from the inside, if it was read.
    pub guest: Option<Guest>,
    /// The metrics of the operator that reconciles the cluster, in text format, if they were read.
    pub metrics: Option<String>,
    /// The logs of containers before their last restart, by pod and container.
    pub previous_logs: BTreeMap<(String, String), String>,
}

/// What was read in a hosted cluster.
#[derive(Debug, Clone, Default)]
pub struct Guest {
    /// Nodes.
    pub nodes: Vec<Value>,
    /// `ValidatingAdmissionPolicies`.
    pub admission_policies: Vec<Value>,
    /// Changes that its administrator has tried.
    pub attempts: Vec<Attempt>,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What does not hold.
    pub invariant: Invariant,
    /// Kind and name of the object.
    pub object: String,
    /// By which names an exception may cover it: the component's, and the container's.
    names: Vec<String>,
    /// What is wrong with it.
    pub problem: String,
}

/// What must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Invariant {
    /// The HostedCluster's conditions are those of a healthy cluster.
    ClusterConditions,
    /// Containers do not restart.
    Restarts,
    /// Deployments of the control plane do not change all the time.
    Generations,
    /// No pod has a higher priority than etcd.
    Priorities,
    /// Images are pulled only if they are not there.
    PullPolicies,
    /// A container that fails without a message reports the end of its log.
    TerminationMessages,
    /// Containers request processor time and memory.
    ResourceRequests,
    /// The cluster autoscaler may evict pods with local volumes.
    LocalVolumes,
    /// Containers cannot write to their images.
    ReadOnlyRoot,
    /// Containers can write to `/tmp`.
    TemporaryDirectories,
    /// Only pods that use the management API have a token for it.
    ManagementTokens,
    /// Pods tolerate and prefer the nodes of control planes, and each other's.
    Scheduling,
    /// Pods run as the user of their namespace.
    Users,
    /// Routes are served by the router of the control plane, if the API is published by a Route.
    RouteLabels,
    /// No pod is unknown.
    KnownPods,
    /// Exactly those pods that use the management API have the label that NetworkPolicies admit there.
    ManagementAccess,
    /// NetworkPolicies keep all other pods from the management API.
    ManagementIsolation,
    /// Policies protect the configuration that belongs to the HostedCluster, and nothing else.
    AdmissionPolicies,
    /// The status has the architecture of the release.
    PayloadArchitecture,
    /// The operator reports the cluster's metrics.
    ClusterMetrics,
    /// Labels and tolerations that the user sets are on all pods.
    UserSettings,
    /// All pods have the label `app`.
    AppLabels,
    /// There are as many ready nodes as replicas of the pools.
    Nodes,
    /// The conditions of NodePools are those of healthy pools.
    PoolConditions,
}

// === impl Invariant ===

impl Invariant {
    /// All of them.
    pub const ALL: [Self; 24] = [
        Self::ClusterConditions,
        Self::Restarts,
        Self::Generations,
        Self::Priorities,
        Self::PullPolicies,
        Self::TerminationMessages,
        Self::ResourceRequests,
        Self::LocalVolumes,
        Self::ReadOnlyRoot,
        Self::TemporaryDirectories,
        Self::ManagementTokens,
        Self::Scheduling,
        Self::Users,
        Self::RouteLabels,
        Self::KnownPods,
        Self::ManagementAccess,
        Self::ManagementIsolation,
        Self::AdmissionPolicies,
        Self::PayloadArchitecture,
        Self::ClusterMetrics,
        Self::UserSettings,
        Self::AppLabels,
        Self::Nodes,
        Self::PoolConditions,
    ];

    fn check(self, observed: &Observed) -> Vec<Finding> {
        let check = match self {
            Self::ClusterConditions => conditions::of_cluster,
            Self::Restarts => containers::restarts,
            Self::Generations => workloads::generations,
            Self::Priorities => scheduling::priorities,
            Self::PullPolicies => containers::pull_policies,
            Self::TerminationMessages => containers::termination_messages,
            Self::ResourceRequests => containers::requests,
            Self::LocalVolumes => volumes::local,
            Self::ReadOnlyRoot => containers::read_only_root,
            Self::TemporaryDirectories => containers::temporary,
            Self::ManagementTokens => access::tokens,
            Self::Scheduling => scheduling::placement,
            Self::Users => scheduling::users,
            Self::RouteLabels => labels::routes,
            Self::KnownPods => known::pods,
            Self::ManagementAccess => access::labels,
            Self::ManagementIsolation => network::isolation,
            Self::AdmissionPolicies => admission::policies,
            Self::PayloadArchitecture => conditions::architecture,
            Self::ClusterMetrics => metrics::present,
            Self::UserSettings => labels::of_users,
            Self::AppLabels => labels::app,
            Self::Nodes => workloads::nodes,
            Self::PoolConditions => conditions::of_pools,
        };
        check(observed)
    }
}

/// What does not hold of a cluster, without what the exceptions cover.
pub fn findings(observed: &Observed) -> Vec<Finding> {
    let all = Invariant::ALL
        .iter()
        .flat_map(|invariant| invariant.check(observed));
    all.filter(|finding| !exceptions::cover(finding.invariant, &finding.names))
        .collect()
}

// === impl Finding ===

impl Finding {
    fn new(invariant: Invariant, object: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            invariant,
            object: object.into(),
            names: Vec::new(),
            problem: problem.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}: {}", self.invariant, self.object, self.problem)
    }
}

/// The items of a list, none if there is no list.
fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// A text, empty if there is none.
fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
