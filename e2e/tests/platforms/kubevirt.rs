//! A cluster with virtual machines of KubeVirt, in pods beside its control plane.

use anyhow::{Context, Result, ensure};
use api::annotations::cluster::MACHINE_HEALTH_CHECK_TIMEOUT;
use api::annotations::node_pool::NODE_POOL;
use api::group::CapiTypes;
use serde_json::Value;
use testbed::hosted::{Cluster, Fixture, Guest, PODS, Platform};
use testbed::node::condition;
use testbed::virtual_machines::{DATA_VOLUMES, INSTANCES, VirtualMachines};

use crate::platforms::reach;

/// The most machines that it has at a time.
const MACHINES: usize = 3;

/// Its life: from nothing to a worker that carries something, more of them, one that fails and is replaced, and the end.
pub(crate) async fn run_lifecycle(fixture: &Fixture, machines: &VirtualMachines) -> Result<()> {
    let platform = Platform::Kubevirt(machines);
    let cluster = Cluster::on(fixture, "virtual", CapiTypes::Private, platform);
    // Long enough for a kubelet that begins again; the usual eight minutes are for users who wait.
    let patience = format!("--annotations={}=10s", MACHINE_HEALTH_CHECK_TIMEOUT.key());
    cluster
        .create(&["--node-pool-replicas=1", &patience])
        .await?;
    let guest = cluster.comes_up().await?;
    cluster.has_workers(&guest, 1).await?;
    cluster.is_on_its_side().await?;
    guest.runs_a_workload(fixture).await?;
    are_virtual_machines(&cluster, &guest).await?;
    reach::is_limited(fixture, &cluster, &guest).await?;
    cluster.scale(MACHINES).await?;
    cluster.has_workers(&guest, MACHINES).await?;
    guest.has_a_network(fixture).await?;
    image_was_imported_once(machines)?;
    replaces_a_dead_machine(&cluster, &guest, machines).await?;
    are_virtual_machines(&cluster, &guest).await?;
    image_was_imported_once(machines)?;
    cluster.destroy().await?;
    for kind in [INSTANCES, DATA_VOLUMES] {
        let left = fixture.testbed.admin.list(&kind.all()).await?;
        ensure!(left.is_empty(), "{} are left: {left:?}", kind.plural);
    }
    Ok(())
}

/// Each node is a virtual machine and its pool's, by the name that the provider has of it and by the address of its pod.
async fn are_virtual_machines(cluster: &Cluster<'_>, guest: &Guest) -> Result<()> {
    let fixture = cluster.fixture();
    fixture
        .stage(
            "each node is a virtual machine, and its pool's",
            async || {
                let machines = cluster.machines().await?;
                for node in guest.nodes().await? {
                    is_virtual_machine(cluster, &node, &machines).await?;
                }
                Ok(())
            },
        )
        .await
}

async fn is_virtual_machine(cluster: &Cluster<'_>, node: &Value, machines: &[Value]) -> Result<()> {
    let name = name(node);
    let id = &node["spec"]["providerID"];
    ensure!(*id == format!("kubevirt://{name}"), "{name} is {id}");
    let machine = machines.iter().find(|one| one["spec"]["providerID"] == *id);
    let machine = machine.with_context(|| format!("no Machine is {id}"))?;
    let status = &machine["status"];
    ensure!(status["nodeRef"]["name"] == name, "{status}");
    let labels = &node["metadata"]["labels"];
    ensure!(labels[NODE_POOL.key()] == cluster.pool(), "{labels}");

    let admin = &cluster.fixture().testbed.admin;
    let namespace = cluster.namespace();
    let instance = admin.get(&INSTANCES.named(&namespace, name)).await?;
    let address = &instance["status"]["interfaces"][0]["ipAddress"];
    let addresses = node["status"]["addresses"].as_array();
    let mut addresses = addresses.into_iter().flatten();
    ensure!(
        addresses.any(|one| one["type"] == "InternalIP" && one["address"] == *address),
        "{name} has the address {address}, and its node has {}",
        node["status"]["addresses"]
    );
    let pod = PODS.named(&namespace, &format!("virt-launcher-{name}"));
    let pod = admin.get(&pod).await?;
    ensure!(pod["status"]["podIP"] == *address, "{}", pod["status"]);
    // By these labels NetworkPolicies isolate it.
    let labels = &pod["metadata"]["labels"];
    ensure!(
        labels["hypershift.openshift.io/infra-id"] == cluster.infra(),
        "{labels}"
    );
    Ok(())
}

/// All disks are copies of one: neither the number of machines nor a replacement pulls the image again.
fn image_was_imported_once(machines: &VirtualMachines) -> Result<()> {
    let imports = machines.imports();
    let image = format!("docker://{}", machines.disk()?);
    ensure!(
        imports.len() == 1 && imports.get(&image) == Some(&1),
        "imported were {imports:?}, and {image} is expected once"
    );
    Ok(())
}

/// Kills a machine without notice to KubeVirt; another one takes its place.
async fn replaces_a_dead_machine(
    cluster: &Cluster<'_>,
    guest: &Guest,
    machines: &VirtualMachines,
) -> Result<()> {
    let fixture = cluster.fixture();
    let before = cluster.machines().await?;
    let victim = before.first().context("there is no machine")?;
    let (machine, uid) = (name(victim), &victim["metadata"]["uid"]);
    let node = victim["status"]["nodeRef"]["name"].as_str();
    let node = node.context("it has no node")?;
    let text = format!("killing {node}, which is {machine}");
    fixture.testbed.progress.note(&text);
    machines.kill(&cluster.namespace(), node)?;
    fixture
        .stage("the failed machine's node is not ready", async || {
            let found = guest.client.get(&format!("/api/v1/nodes/{node}")).await?;
            ensure!(condition(&found, "Ready").is_err(), "it is ready");
            Ok(())
        })
        .await?;
    let pod = PODS.named(&cluster.namespace(), &format!("virt-launcher-{node}"));
    fixture
        .stage("its Machine and its pod are gone", async || {
            let machines = cluster.machines().await?;
            let is_there = machines.iter().any(|one| one["metadata"]["uid"] == *uid);
            ensure!(!is_there, "{machine} is there");
            let pod = fixture.testbed.admin.find(&pod).await?;
            ensure!(pod.is_none(), "its pod is there");
            Ok(())
        })
        .await?;
    cluster.has_workers(guest, MACHINES).await
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}
