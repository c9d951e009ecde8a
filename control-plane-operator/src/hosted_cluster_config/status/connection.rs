//! Whether the control plane reaches its nodes, and they it.
//!
//! From the control plane: the API server is asked to ask a kubelet how it does, which is the way of logs and exec.
//! From the nodes: a node is ready for as long as its kubelet reports through the API server.

use std::sync::Arc;
use std::time::Duration;

use api::conditions::{ClusterCondition, Status};
use http::Request;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;
use support::error::chain;

use super::super::context::Context;
use super::super::control_plane::Wanted;

/// How long a kubelet may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reached {
    /// There is no node that could be reached.
    NoNodes,
    /// Nodes are there, and none of them is ready.
    NoneReady,
    /// A kubelet has answered.
    Yes,
    /// It has not, and this is what happened.
    No(String),
}

/// Asks the first ready node.
pub(super) async fn ask(ctx: &Context, nodes: &[Arc<Node>]) -> Reached {
    if nodes.is_empty() {
        return Reached::NoNodes;
    }
    let mut ready: Vec<_> = nodes.iter().filter(|node| is_ready(node)).collect();
    ready.sort_by_key(|node| node.name_any());
    let Some(node) = ready.first() else {
        return Reached::NoneReady;
    };
    match tokio::time::timeout(PATIENCE, healthz(&ctx.guest, &node.name_any())).await {
        Ok(Ok(())) => Reached::Yes,
        Ok(Err(error)) => Reached::No(chain(&error)),
        Err(_) => Reached::No("the kubelet did not answer in time".to_owned()),
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

/// Both directions.
pub(super) fn conditions(reached: &Reached) -> [Wanted; 2] {
    let no_nodes = "NoWorkerNodesAvailable";
    let (to_nodes, from_nodes) = match reached {
        Reached::NoNodes => {
            let found = (
                Status::Unknown,
                no_nodes,
                "there are no nodes yet".to_owned(),
            );
            (found.clone(), found)
        }
        Reached::NoneReady => (
            (Status::Unknown, no_nodes, "no node is ready".to_owned()),
            (
                Status::False,
                "NodesNotReady",
                "no node reports: look at the network from the nodes to the API server".to_owned(),
            ),
        ),
        Reached::Yes => (
            (
                Status::True,
                "AsExpected",
                "A kubelet answers through the API server".to_owned(),
            ),
            (
                Status::True,
                "AsExpected",
                "Nodes report to the API server".to_owned(),
            ),
        ),
        Reached::No(problem) => (
            (Status::False, "KubeletUnreachable", problem.clone()),
            (
                Status::True,
                "AsExpected",
                "Nodes report to the API server".to_owned(),
            ),
        ),
    };
    [
        wanted(ClusterCondition::DataPlaneConnectionAvailable, to_nodes),
        wanted(
            ClusterCondition::ControlPlaneConnectionAvailable,
            from_nodes,
        ),
    ]
}

fn wanted(
    about: ClusterCondition,
    (status, reason, message): (Status, &'static str, String),
) -> Wanted {
    Wanted {
        about,
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
    fn both_directions_are_told_apart() {
        for (reached, expected) in [
            (Reached::NoNodes, [Status::Unknown, Status::Unknown]),
            (Reached::NoneReady, [Status::Unknown, Status::False]),
            (Reached::Yes, [Status::True, Status::True]),
            (
                Reached::No("refused".to_owned()),
                [Status::False, Status::True],
            ),
        ] {
            assert_eq!(
                conditions(&reached).map(|it| it.status),
                expected,
                "{reached:?}"
            );
        }
    }

    #[test]
    fn a_node_is_ready_by_its_condition() {
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
