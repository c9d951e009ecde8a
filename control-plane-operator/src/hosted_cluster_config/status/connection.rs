//! Connectivity between the control plane and its nodes, by what proves it.
//!
//! To the nodes: the log of a konnectivity agent, which the API server reads from a kubelet through konnectivity. From the
//! nodes: the last success of the connection checker, whose pods call the API server as all pods do.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use api::conditions::{ClusterCondition, Status};
use futures::AsyncReadExt as _;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::api::{ListParams, LogParams};
use kube::{Api, ResourceExt as _};
use support::error::chain;
use tokio::time::{Instant, timeout, timeout_at};

use super::super::control_plane::DesiredCondition;

/// Timeout of one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit for all logs, because each node that is gone costs a timeout.
const LOGS_TIMEOUT: Duration = Duration::from_secs(30);
/// Namespace of the agents and of the checker.
const NAMESPACE: &str = "kube-system";
/// The agents' container, and the value of their label `app`.
const AGENT: &str = "konnectivity-agent";
/// How many agents are considered: their number belongs to the hosted cluster.
const MOST_AGENTS: u32 = 100;
/// How much of a log is requested.
const LOG_BYTES: i64 = 1024;
/// ConfigMap in which the connection checker reports, and its key.
const REPORT: &str = "control-plane-connectivity-check";
const LAST_SUCCEEDED: &str = "lastSucceeded";
/// The checker reports every minute.
const STALE_AFTER: SignedDuration = SignedDuration::from_mins(5);

/// What was found out about both directions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Connection {
    /// The nodes cannot be listed, with the error.
    NodesNotListed(String),
    /// No node is ready and schedulable.
    NoNodes,
    /// There are nodes.
    Checked(ToNodes, FromNodes),
}

/// From the API server to kubelets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ToNodes {
    /// The pods of agents cannot be listed, with the error.
    NotListed(String),
    /// No pod of an agent is running.
    NotRunning,
    /// No log could be read, with the last error.
    NotRead(String),
    /// A log was read.
    Read,
}

/// From pods on nodes to the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FromNodes {
    /// There is no report.
    NoReport,
    /// The report cannot be read, with the error.
    NotRead(String),
    /// The report has this text in place of a time.
    NoTime(String),
    /// The last success.
    LastSucceeded(Timestamp),
}

/// Checks both directions.
pub(super) async fn check(guest: &kube::Client, nodes: &[Arc<Node>]) -> Connection {
    let available = nodes.iter().filter(|node| is_available(node));
    let available: BTreeSet<_> = available.map(|node| node.name_any()).collect();
    if available.is_empty() {
        return Connection::NoNodes;
    }
    let (to_nodes, from_nodes) = tokio::join!(read_log(guest, &available), read_report(guest));
    Connection::Checked(to_nodes, from_nodes)
}

/// Whether a node is ready and schedulable.
fn is_available(node: &Node) -> bool {
    let is_cordoned = node.spec.as_ref().and_then(|spec| spec.unschedulable);
    let status = node.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    let is_ready =
        conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True");
    is_ready && is_cordoned != Some(true)
}

/// Reads the log of one agent after the other, until one has something in it.
async fn read_log(guest: &kube::Client, available: &BTreeSet<String>) -> ToNodes {
    let api: Api<Pod> = Api::namespaced(guest.clone(), NAMESPACE);
    let running = ListParams::default()
        .labels(&format!("app={AGENT}"))
        .fields("status.phase=Running")
        .limit(MOST_AGENTS);
    let pods = match request(api.list(&running)).await {
        Ok(pods) => in_order(pods.items, available),
        Err(problem) => return ToNodes::NotListed(problem),
    };
    let params = LogParams {
        container: Some(AGENT.to_owned()),
        limit_bytes: Some(LOG_BYTES),
        ..LogParams::default()
    };
    let deadline = Instant::now() + LOGS_TIMEOUT;
    let mut found = ToNodes::NotRunning;
    for pod in &pods {
        let read = timeout_at(deadline, request(has_log(&api, pod, &params))).await;
        let problem = match read {
            Ok(Ok(true)) => return ToNodes::Read,
            Ok(Ok(false)) => "the log is empty".to_owned(),
            Ok(Err(problem)) => problem,
            Err(_) => break,
        };
        found = ToNodes::NotRead(format!("Pod {NAMESPACE}/{pod}: {problem}"));
    }
    found
}

/// Whether the log of a pod has something in it. Only its first byte is read: the kubelet belongs to the hosted cluster, and need
/// not respect the limit.
async fn has_log(api: &Api<Pod>, pod: &str, params: &LogParams) -> kube::Result<bool> {
    let mut log = std::pin::pin!(api.log_stream(pod, params).await?);
    let read = log.read(&mut [0]).await;
    Ok(read.map_err(kube::Error::ReadEvents)? > 0)
}

/// Names of pods, first those on nodes that are available. Pods of a lost node are running for a while.
fn in_order(pods: Vec<Pod>, available: &BTreeSet<String>) -> Vec<String> {
    let is_on_available = |pod: &Pod| {
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref());
        node.is_some_and(|node| available.contains(node))
    };
    let (first, last): (Vec<_>, Vec<_>) = pods.into_iter().partition(is_on_available);
    let all = first.into_iter().chain(last);
    all.map(|pod| pod.name_any()).collect()
}

async fn read_report(guest: &kube::Client) -> FromNodes {
    let api: Api<ConfigMap> = Api::namespaced(guest.clone(), NAMESPACE);
    match request(api.get_opt(REPORT)).await {
        Ok(None) => FromNodes::NoReport,
        Ok(Some(report)) => {
            let data = report.data.unwrap_or_default();
            let text = data.get(LAST_SUCCEEDED).map_or("", String::as_str);
            last_success(text)
        }
        Err(problem) => FromNodes::NotRead(problem),
    }
}

fn last_success(text: &str) -> FromNodes {
    /// Users of the hosted cluster can write any text.
    const LONGEST: usize = 64;
    text.parse().map_or_else(
        |_| FromNodes::NoTime(text.chars().take(LONGEST).collect()),
        FromNodes::LastSucceeded,
    )
}

async fn request<T>(sent: impl Future<Output = kube::Result<T>>) -> Result<T, String> {
    match timeout(REQUEST_TIMEOUT, sent).await {
        Ok(answer) => answer.map_err(|error| chain(&error)),
        Err(_) => Err("timed out waiting for the API server".to_owned()),
    }
}

// === impl Connection ===

impl Connection {
    /// The conditions of both directions.
    pub(super) fn conditions(&self, now: Timestamp) -> [DesiredCondition; 2] {
        let (to_nodes, from_nodes) = match self {
            Self::NodesNotListed(problem) => (nodes_not_listed(problem), nodes_not_listed(problem)),
            Self::NoNodes => (no_nodes(), no_nodes()),
            Self::Checked(to_nodes, from_nodes) => (to_nodes.state(), from_nodes.state(now)),
        };
        [
            desired(ClusterCondition::DataPlaneConnectionAvailable, to_nodes),
            desired(
                ClusterCondition::ControlPlaneConnectionAvailable,
                from_nodes,
            ),
        ]
    }
}

/// Status, reason and message.
type State = (Status, &'static str, String);

fn no_nodes() -> State {
    let message = "No node is ready and schedulable".to_owned();
    (Status::Unknown, "NoWorkerNodesAvailable", message)
}

fn nodes_not_listed(problem: &str) -> State {
    let message = format!("Failed to list Nodes: {problem}");
    (Status::Unknown, "ReconcileError", message)
}

// === impl ToNodes ===

impl ToNodes {
    fn state(&self) -> State {
        let not_found = "KonnectivityAgentPodsNotFound";
        match self {
            Self::NotListed(problem) => (
                Status::False,
                "ReconciliationError",
                format!("Failed to list pods of konnectivity-agent: {problem}"),
            ),
            Self::NotRunning => (
                Status::False,
                not_found,
                "No pod of konnectivity-agent is running".to_owned(),
            ),
            Self::NotRead(problem) => (
                Status::False,
                not_found,
                format!("Failed to read the log of any konnectivity-agent: {problem}"),
            ),
            Self::Read => (
                Status::True,
                "AsExpected",
                "The API server reaches kubelets through konnectivity".to_owned(),
            ),
        }
    }
}

// === impl FromNodes ===

impl FromNodes {
    fn state(&self, now: Timestamp) -> State {
        match self {
            Self::NoReport => (
                Status::Unknown,
                "ConfigMapNotFound",
                format!("ConfigMap {NAMESPACE}/{REPORT} does not exist"),
            ),
            Self::NotRead(problem) => (
                Status::Unknown,
                "ReconcileError",
                format!("Failed to get ConfigMap {NAMESPACE}/{REPORT}: {problem}"),
            ),
            Self::NoTime(text) => (
                Status::False,
                "KASAccessFailed",
                format!(
                    "No pod has reached the API server: {LAST_SUCCEEDED} in ConfigMap {NAMESPACE}/{REPORT} is {text:?}"
                ),
            ),
            Self::LastSucceeded(time) if now.duration_since(*time) > STALE_AFTER => (
                Status::False,
                "ConnectionCheckStale",
                format!("Pods have not reached the API server since {time}"),
            ),
            Self::LastSucceeded(_) => (
                Status::True,
                "AsExpected",
                "Pods reach the API server".to_owned(),
            ),
        }
    }
}

fn desired(type_: ClusterCondition, (status, reason, message): State) -> DesiredCondition {
    DesiredCondition {
        type_,
        status,
        reason,
        message,
    }
}

#[cfg(test)]
mod tests;
