//! A cluster with virtual machines on another infrastructure cluster: the same API server, by a kubeconfig whose user
//! has rights in one namespace only.

use anyhow::{Context, Result, ensure};
use api::group::CapiTypes;
use testbed::client::Resource;
use testbed::conditions;
use testbed::hosted::{Cluster, Fixture, Guest, PODS, Platform, SECRETS};
use testbed::node::condition;
use testbed::virtual_machines::{
    DATA_VOLUMES, ExternalInfra, INSTANCES, MACHINES, VirtualMachines,
};

use crate::platforms::boot_image::is_cached_once;
use crate::platforms::kubevirt::are_virtual_machines;
use crate::platforms::reach::{Place, Surroundings};

/// The namespace of its machines.
const NAMESPACE: &str = "remote-machines";
/// What its user may not do at first.
const WITHHELD: [&str; 2] = ["datavolumes", "networkpolicies"];
/// As the conditions name it.
const DENIED: [&str; 2] = [
    "datavolumes.cdi.kubevirt.io",
    "networkpolicies.networking.k8s.io",
];
/// The conditions about it.
const CREDENTIALS: &str = "PlatformCredentialsFound";
const POLICY: &str = "ValidKubeVirtInfraNetworkPolicyRBAC";
/// Why the second is False.
const REFUSED: &str = "InfraClusterNetworkPolicyCreateFailed";
/// The most machines that it has at a time, of which all but the first never boot.
const MOST: usize = 10;

const EVENTS: Resource<'_> = Resource::new("v1", "events");
const POLICIES: Resource<'_> = Resource::new("networking.k8s.io/v1", "networkpolicies");
const SERVICES: Resource<'_> = Resource::new("v1", "services");
const SLICES: Resource<'_> = Resource::new("discovery.k8s.io/v1", "endpointslices");

/// Its life: rights that are missing and then granted, a worker that carries something, a pool of ten, and the end.
pub(crate) async fn run_lifecycle(
    fixture: &Fixture,
    machines: &VirtualMachines,
    surroundings: &Surroundings<'_>,
) -> Result<()> {
    let infra = ExternalInfra::new(&fixture.testbed, NAMESPACE)?;
    infra.allow_all_but(&WITHHELD).await?;
    let platform = Platform::ExternalKubevirt(machines, &infra);
    let cluster = Cluster::on(fixture, "remote", CapiTypes::Private, platform);
    cluster.create(&["--node-pool-replicas=1"]).await?;
    names_missing_rights(&cluster).await?;
    infra.allow_all_but(&[]).await?;
    infra.show_networks(&fixture.testbed).await?;
    let guest = cluster.comes_up().await?;
    has_its_rights(&cluster).await?;
    cluster.has_workers(&guest, 1).await?;
    cluster.is_on_its_side().await?;
    guest.runs_a_workload(fixture).await?;
    are_virtual_machines(&cluster, &guest, NAMESPACE).await?;
    has_no_machines_beside(&cluster).await?;
    let place = Place::Elsewhere;
    surroundings.are_closed_to(&cluster, &guest, place).await?;
    ten_machines_share_a_copy(&cluster, &guest, machines).await?;
    cluster.destroy().await?;
    nothing_is_left(fixture).await
}

/// Waits until its conditions name what its user may not do and nothing else, and an Event on the infrastructure
/// cluster says the same of the policy.
async fn names_missing_rights(cluster: &Cluster<'_>) -> Result<()> {
    let fixture = cluster.fixture();
    let event = format!("virt-launcher-netpol-rbac-{}", cluster.infra());
    let event = EVENTS.named(NAMESPACE, &event);
    let what = format!("{}: missing rights are named", cluster.name());
    fixture
        .stage(&what, async || {
            let seen = cluster.seen().await?;
            let found = conditions::find(&seen, CREDENTIALS).context(CREDENTIALS)?;
            let message = found["message"].as_str().unwrap_or_default();
            ensure!(
                found["status"] == "False"
                    && DENIED.iter().all(|name| message.contains(name))
                    && !message.contains("virtualmachines"),
                "{found}"
            );
            let found = conditions::find(&seen, POLICY).context(POLICY)?;
            ensure!(
                found["status"] == "False" && found["reason"] == REFUSED,
                "{found}"
            );
            let event = fixture.testbed.admin.get(&event).await?;
            ensure!(event["reason"] == REFUSED, "{event}");
            Ok(())
        })
        .await
}

/// Waits until nothing is missing any more, and the policy of its machines is there.
async fn has_its_rights(cluster: &Cluster<'_>) -> Result<()> {
    let fixture = cluster.fixture();
    let policy = format!("virt-launcher-{}", cluster.infra());
    let policy = POLICIES.named(NAMESPACE, &policy);
    let what = format!("{}: its rights are enough", cluster.name());
    fixture
        .stage(&what, async || {
            let seen = cluster.seen().await?;
            for about in [CREDENTIALS, POLICY] {
                condition(&seen, about)?;
            }
            fixture.testbed.admin.get(&policy).await.map(drop)
        })
        .await
}

/// The namespace of its control plane has nothing of its machines.
async fn has_no_machines_beside(cluster: &Cluster<'_>) -> Result<()> {
    let admin = &cluster.fixture().testbed.admin;
    for kind in [MACHINES, INSTANCES, DATA_VOLUMES] {
        let found = admin.list(&kind.within(&cluster.namespace())).await?;
        ensure!(found.is_empty(), "{}: {found:?}", kind.plural);
    }
    Ok(())
}

/// Has a pool of ten, whose further machines are objects and pods only, and then one again.
async fn ten_machines_share_a_copy(
    cluster: &Cluster<'_>,
    guest: &Guest,
    machines: &VirtualMachines,
) -> Result<()> {
    let copy = is_cached_once(cluster, machines, NAMESPACE, 1).await?;
    machines.hold(NAMESPACE);
    cluster.scale(MOST).await?;
    has_instances(cluster, MOST).await?;
    let now = is_cached_once(cluster, machines, NAMESPACE, MOST).await?;
    ensure!(now == copy, "it is another copy");
    // Machines without a node are deleted first.
    cluster.scale(1).await?;
    has_instances(cluster, 1).await?;
    machines.resume(NAMESPACE);
    cluster.has_workers(guest, 1).await?;
    let now = is_cached_once(cluster, machines, NAMESPACE, 1).await?;
    ensure!(now == copy, "it is another copy");
    Ok(())
}

async fn has_instances(cluster: &Cluster<'_>, count: usize) -> Result<()> {
    let fixture = cluster.fixture();
    let what = format!("{}: {count} virtual machines run", cluster.name());
    fixture
        .stage(&what, async || {
            let path = INSTANCES.within(NAMESPACE);
            let found = fixture.testbed.admin.list(&path).await?;
            ensure!(found.len() == count, "there are {}", found.len());
            found.iter().try_for_each(|one| condition(one, "Ready"))
        })
        .await
}

/// Waits until all that was made on the infrastructure cluster is gone, and deletes the namespace.
async fn nothing_is_left(fixture: &Fixture) -> Result<()> {
    let admin = &fixture.testbed.admin;
    let kinds = [
        MACHINES,
        INSTANCES,
        DATA_VOLUMES,
        PODS,
        SECRETS,
        SERVICES,
        SLICES,
        POLICIES,
    ];
    let what = format!("nothing is left in namespace {NAMESPACE}");
    fixture
        .stage(&what, async || {
            for kind in kinds {
                let left = admin.list(&kind.within(NAMESPACE)).await?;
                let names = left.iter().map(|one| &one["metadata"]["name"]);
                let names: Vec<_> = names.collect();
                ensure!(names.is_empty(), "{}: {names:?}", kind.plural);
            }
            Ok(())
        })
        .await?;
    admin
        .delete(&format!("/api/v1/namespaces/{NAMESPACE}"))
        .await
}
