//! A cluster with machines of an Agent service.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::annotations::node_pool::NODE_POOL;
use api::group::{self, CapiTypes};
use serde_json::Value;
use testbed::agents::{AgentService, kinds};
use testbed::capi_storage;
use testbed::client::Resource;
use testbed::hosted::{Cluster, Fixture, Guest, Platform};

pub(crate) const AGENT_MACHINES: Resource<'_> = Resource::new(
    "capi-provider.agent-install.openshift.io/v1beta1",
    "agentmachines",
);
/// What every node of a pool is.
const WORKER: &str = "node-role.kubernetes.io/worker";
/// Generous: a busy machine is no failure.
const WITHIN: Duration = Duration::from_mins(2);

/// Its life: from nothing to workers that carry something, more of them, none, and the end.
pub(crate) async fn run_lifecycle(fixture: &Fixture, service: &AgentService) -> Result<()> {
    let cluster = Cluster::on(
        fixture,
        "metal",
        CapiTypes::Private,
        Platform::Agent(service),
    );
    cluster.create(&["--node-pool-replicas=1"]).await?;
    let guest = cluster.comes_up().await?;
    cluster.has_workers(&guest, 1).await?;
    cluster.is_on_its_side().await?;
    guest.runs_a_workload(fixture).await?;
    are_agents(&cluster, &guest).await?;
    for count in [2, 0] {
        cluster.scale(count).await?;
        cluster.has_workers(&guest, count).await?;
    }
    service.is_idle(&fixture.testbed.admin, WITHIN).await?;
    // A host that was given back is taken again, and starts again.
    cluster.scale(1).await?;
    cluster.has_workers(&guest, 1).await?;
    are_agents(&cluster, &guest).await?;
    cluster.destroy().await?;
    service.is_idle(&fixture.testbed.admin, WITHIN).await
}

/// Each node is a large Agent and its pool's, by the name that the provider has of it, and the provider saw no private
/// group.
async fn are_agents(cluster: &Cluster<'_>, guest: &Guest) -> Result<()> {
    let fixture = cluster.fixture();
    let machines = cluster.machines().await?;
    fixture
        .stage("each node is an Agent, and its pool's", async || {
            for node in guest.nodes().await? {
                is_agent(&node, &machines, &cluster.pool())?;
            }
            Ok(())
        })
        .await?;
    let all = AGENT_MACHINES.within(&cluster.namespace());
    for machine in fixture.testbed.admin.list(&all).await? {
        // What is stored is private; that the provider found its Machine by it says that it was shown the other.
        let owner = &machine["metadata"]["ownerReferences"][0];
        let version = owner["apiVersion"].as_str().unwrap_or_default();
        let group = version.split('/').next();
        ensure!(group == Some(&group::core(CapiTypes::Private)), "{owner}");
    }
    let etcd = &fixture.testbed.control_plane.etcd;
    let standard = capi_storage::objects(etcd, CapiTypes::Standard).await?;
    ensure!(standard.is_empty(), "of standard groups are {standard:?}");
    let stored = etcd
        .keys(&format!("/registry/{}/", kinds::PROVIDER))
        .await?;
    ensure!(!stored.is_empty(), "nothing of the provider's is stored");
    Ok(())
}

fn is_agent(node: &Value, machines: &[Value], pool: &str) -> Result<()> {
    let (metadata, id) = (&node["metadata"], &node["spec"]["providerID"]);
    let name = metadata["name"].as_str().context("it has no name")?;
    let large = ["agent://host-2", "agent://host-3"];
    ensure!(
        *id == format!("agent://{name}") && large.iter().any(|one| id == one),
        "{name} is {id}"
    );
    let machine = machines.iter().find(|one| one["spec"]["providerID"] == *id);
    let machine = machine.with_context(|| format!("no Machine is {id}"))?;
    ensure!(
        machine["status"]["nodeRef"]["name"] == name,
        "{}",
        machine["status"]
    );
    let labels = &metadata["labels"];
    ensure!(
        labels[NODE_POOL.key()] == pool && labels.get(WORKER).is_some(),
        "{labels}"
    );
    Ok(())
}
