//! A cluster with virtual machines of KubeVirt, in pods beside its control plane.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use api::annotations::cluster::MACHINE_HEALTH_CHECK_TIMEOUT;
use api::annotations::node_pool::NODE_POOL;
use api::group::CapiTypes;
use serde_json::{Value, json};
use testbed::client::Patch;
use testbed::hosted::{Cluster, Fixture, Guest, PODS, Platform};
use testbed::node::condition;
use testbed::virtual_machines::{INSTANCES, VirtualMachines};

use crate::platforms::boot_image::is_cached_once;
use crate::platforms::ingress::Ingress;
use crate::platforms::reach::{Place, Surroundings};

/// The most machines that it has at a time.
const MACHINES: usize = 2;
/// The release that it is upgraded to.
const NEWER: &str = "4.22.1";

/// Its life: from nothing to a worker that carries something, more of them, one that fails and is replaced, another
/// release, and the end.
pub(crate) async fn run_lifecycle(
    fixture: &Fixture,
    machines: &VirtualMachines,
    surroundings: &Surroundings<'_>,
) -> Result<()> {
    let platform = Platform::Kubevirt(machines);
    let cluster = Cluster::on(fixture, "virtual", CapiTypes::Private, platform);
    let namespace = cluster.namespace();
    // Long enough for a kubelet that begins again; the usual eight minutes are for users who wait.
    let patience = format!("--annotations={}=10s", MACHINE_HEALTH_CHECK_TIMEOUT.key());
    cluster
        .create(&["--node-pool-replicas=1", &patience])
        .await?;
    let guest = cluster.comes_up().await?;
    let ingress = Ingress::start(&cluster, &guest, machines).await?;
    cluster.has_workers(&guest, 1).await?;
    cluster.is_on_its_side().await?;
    guest.runs_a_workload(fixture).await?;
    are_virtual_machines(&cluster, &guest, &namespace).await?;
    ingress.leads_to(1).await?;
    ingress.reaches_a_pod().await?;
    let place = Place::Beside;
    surroundings.are_closed_to(&cluster, &guest, place).await?;
    let copy = is_cached_once(&cluster, machines, &namespace, 1).await?;

    cluster.scale(MACHINES).await?;
    cluster.has_workers(&guest, MACHINES).await?;
    guest.has_a_network(fixture).await?;
    ingress.leads_to(MACHINES).await?;
    replaces_a_dead_machine(&cluster, &guest, machines).await?;
    are_virtual_machines(&cluster, &guest, &namespace).await?;
    ingress.leads_to(MACHINES).await?;

    cluster.scale(1).await?;
    cluster.has_workers(&guest, 1).await?;
    is_upgraded(&cluster, &guest, 1).await?;
    are_virtual_machines(&cluster, &guest, &namespace).await?;
    ingress.leads_to(1).await?;
    ingress.reaches_a_pod().await?;
    let now = is_cached_once(&cluster, machines, &namespace, 1).await?;
    ensure!(now == copy, "the boot image was copied again");
    cluster.destroy().await
}

/// Waits until each node is a virtual machine in a namespace and its pool's, by the name that the provider has of it and by
/// the address of its pod, and the pool says that all of them can be migrated.
pub(crate) async fn are_virtual_machines(
    cluster: &Cluster<'_>,
    guest: &Guest,
    namespace: &str,
) -> Result<()> {
    let fixture = cluster.fixture();
    let what = format!(
        "{}: each node is a virtual machine, and its pool's",
        cluster.name()
    );
    fixture
        .stage(&what, async || {
            let machines = cluster.machines().await?;
            for node in guest.nodes().await? {
                is_virtual_machine(cluster, &node, &machines, namespace).await?;
            }
            let pool = fixture.testbed.admin.get(&cluster.pool_path()).await?;
            condition(&pool, "KubeVirtNodesLiveMigratable")
        })
        .await
}

async fn is_virtual_machine(
    cluster: &Cluster<'_>,
    node: &Value,
    machines: &[Value],
    namespace: &str,
) -> Result<()> {
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
    let instance = admin.get(&INSTANCES.named(namespace, name)).await?;
    let address = &instance["status"]["interfaces"][0]["ipAddress"];
    let addresses = node["status"]["addresses"].as_array();
    let mut addresses = addresses.into_iter().flatten();
    ensure!(
        addresses.any(|one| one["type"] == "InternalIP" && one["address"] == *address),
        "{name} has the address {address}, and its node has {}",
        node["status"]["addresses"]
    );
    let pod = PODS.named(namespace, &format!("virt-launcher-{name}"));
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
        .stage(
            "virtual: the failed machine's node is not ready",
            async || {
                let found = guest.client.get(&format!("/api/v1/nodes/{node}")).await?;
                ensure!(condition(&found, "Ready").is_err(), "it is ready");
                Ok(())
            },
        )
        .await?;
    let pod = PODS.named(&cluster.namespace(), &format!("virt-launcher-{node}"));
    fixture
        .stage("virtual: its Machine and its pod are gone", async || {
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

/// The control plane gets another release, and then its pool, whose machines are replaced.
async fn is_upgraded(cluster: &Cluster<'_>, guest: &Guest, count: usize) -> Result<()> {
    let fixture = cluster.fixture();
    let admin = &fixture.testbed.admin;
    let release = fixture.pushed.release(&fixture.testbed.registry, NEWER);
    let release = release.await?;
    let before = uids(&cluster.machines().await?);
    let desired = json!({ "spec": { "release": { "image": release.image } } });
    admin.patch(&cluster.path(), Patch::Merge, &desired).await?;
    let what = format!("{}: its control plane has {NEWER}", cluster.name());
    fixture
        .stage(&what, async || {
            let seen = cluster.seen().await?;
            let newest = &seen["status"]["version"]["history"][0];
            ensure!(
                newest["version"] == NEWER && newest["state"] == "Completed",
                "{newest}"
            );
            condition(&seen, "Available")
        })
        .await?;
    cluster.rolled_out().await?;
    let kept = uids(&cluster.machines().await?);
    ensure!(
        kept == before,
        "machines were replaced before their pool was upgraded"
    );
    let path = cluster.pool_path();
    admin.patch(&path, Patch::Merge, &desired).await?;
    let what = format!("{}: its pool has {NEWER}", cluster.name());
    fixture
        .stage(&what, async || {
            let pool = admin.get(&path).await?;
            let version = &pool["status"]["version"];
            ensure!(version == NEWER, "{version}");
            condition(&pool, "AllNodesHealthy")
        })
        .await?;
    cluster.has_workers(guest, count).await?;
    let after = uids(&cluster.machines().await?);
    ensure!(before.is_disjoint(&after), "{after:?} are not new");
    Ok(())
}

fn uids(machines: &[Value]) -> BTreeSet<String> {
    let uids = machines.iter().map(|one| &one["metadata"]["uid"]);
    uids.map(ToString::to_string).collect()
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}
