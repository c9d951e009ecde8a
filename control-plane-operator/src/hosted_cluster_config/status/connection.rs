//! Connectivity between the control plane and its nodes.
//!
//! To the nodes: a kubelet health check through the API server's proxy, as logs and exec use it. From the nodes: a node
//! is ready while its kubelet reports to the API server.

use std::sync::Arc;
use std::time::Duration;

use api::conditions::{ClusterCondition, Status};
use http::Request;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;
use support::error::chain;

use super::super::context::Context;
use super::super::control_plane::DesiredCondition;

/// Timeout of the kubelet health check.
const KUBELET_TIMEOUT: Duration = Duration::from_secs(5);

/// Result of the kubelet health check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KubeletCheck {
    /// There are no nodes.
    NoNodes,
    /// No node is ready.
    NoneReady,
    /// A kubelet responded.
    Reachable,
    /// The health check failed, with the error.
    Unreachable(String),
}

/// Checks the kubelet of the first ready node.
pub(super) async fn check_kubelet(ctx: &Context, nodes: &[Arc<Node>]) -> KubeletCheck {
    if nodes.is_empty() {
        return KubeletCheck::NoNodes;
    }
    let mut ready: Vec<_> = nodes.iter().filter(|node| is_ready(node)).collect();
    ready.sort_by_key(|node| node.name_any());
    let Some(node) = ready.first() else {
        return KubeletCheck::NoneReady;
    };
    match tokio::time::timeout(KUBELET_TIMEOUT, healthz(&ctx.guest, &node.name_any())).await {
        Ok(Ok(())) => KubeletCheck::Reachable,
        Ok(Err(error)) => KubeletCheck::Unreachable(chain(&error)),
        Err(_) => KubeletCheck::Unreachable("timed out waiting for the kubelet".to_owned()),
    }
}

async fn healthz(guest: &kube::Client, node: &str) -> kube::Result<()> {
    let path = format!("/api/v1/nodes/{node}/proxy/healthz");
    let request = Request::get(path).body(Vec::new());
    let request = request.map_err(kube::Error::HttpError)?;
    guest.request_text(request).await.map(drop)
}

fn is_ready(node: &Node) -> bool {
    let status = node.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Returns the conditions of both directions.
pub(super) fn conditions(kubelet: &KubeletCheck) -> [DesiredCondition; 2] {
    let no_nodes = "NoWorkerNodesAvailable";
    let (to_nodes, from_nodes) = match kubelet {
        KubeletCheck::NoNodes => {
            let found = (
                Status::Unknown,
                no_nodes,
                "Waiting for nodes to join".to_owned(),
            );
            (found.clone(), found)
        }
        KubeletCheck::NoneReady => (
            (Status::Unknown, no_nodes, "No node is ready".to_owned()),
            (
                Status::False,
                "NodesNotReady",
                "No node is ready. Check the network from the nodes to the API server.".to_owned(),
            ),
        ),
        KubeletCheck::Reachable => (
            (
                Status::True,
                "AsExpected",
                "The API server reaches kubelets".to_owned(),
            ),
            (
                Status::True,
                "AsExpected",
                "Nodes report to the API server".to_owned(),
            ),
        ),
        KubeletCheck::Unreachable(problem) => (
            (Status::False, "KubeletUnreachable", problem.clone()),
            (
                Status::True,
                "AsExpected",
                "Nodes report to the API server".to_owned(),
            ),
        ),
    };
    [
        desired(ClusterCondition::DataPlaneConnectionAvailable, to_nodes),
        desired(
            ClusterCondition::ControlPlaneConnectionAvailable,
            from_nodes,
        ),
    ]
}

fn desired(
    type_: ClusterCondition,
    (status, reason, message): (Status, &'static str, String),
) -> DesiredCondition {
    DesiredCondition {
        type_,
        status,
        reason,
        message,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn connectivity_conditions_distinguish_directions() {
        for (kubelet, expected) in [
            (KubeletCheck::NoNodes, [Status::Unknown, Status::Unknown]),
            (KubeletCheck::NoneReady, [Status::Unknown, Status::False]),
            (KubeletCheck::Reachable, [Status::True, Status::True]),
            (
                KubeletCheck::Unreachable("refused".to_owned()),
                [Status::False, Status::True],
            ),
        ] {
            assert_eq!(
                conditions(&kubelet).map(|it| it.status),
                expected,
                "{kubelet:?}"
            );
        }
    }

    #[test]
    fn node_readiness_follows_the_ready_condition() {
        for (status, expected) in [("True", true), ("False", false), ("Unknown", false)] {
            let node = json!({ "metadata": {}, "status": { "conditions": [{ "type": "Ready", "status": status }] } });
            assert_eq!(
                is_ready(&serde_json::from_value(node).unwrap()),
                expected,
                "{status}"
            );
        }
    }
}
