//! Clusters on an Agent service.

use super::Cluster;
use crate::agents::NAMESPACE;

/// The Agents that pools take.
const SIZE: &str = "size=large";

/// Its flags. The provider registers no cluster without a domain at the service. Everything is published on ports of the
/// management cluster's nodes.
pub(super) fn flags(cluster: &Cluster<'_>) -> Vec<String> {
    let node = cluster.fixture().testbed.namespaces().subnets().node(1);
    vec![
        format!("--api-server-address={node}"),
        format!("--agent-namespace={NAMESPACE}"),
        format!("--agentLabelSelector={SIZE}"),
        format!("--infra-id={}", cluster.infra()),
        "--base-domain=testbed".to_owned(),
        "--auto-repair".to_owned(),
    ]
}
