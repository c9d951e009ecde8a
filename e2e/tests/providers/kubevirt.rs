//! KubeVirt, whose machines are created, added, evicted and removed. It is a stand-in, whose virtual machines are objects
//! only, and which the test's own kubelets make nodes of.

mod nodes;
mod scenario;

use anyhow::{Result, ensure};
use testbed::progress::Progress;
use testbed::providers::Provider;
use testbed::testbed::Testbed;
use testbed::virtual_machines::VirtualMachines;

use crate::providers::cloud::Connection;
use crate::providers::comparison::{Comparison, SIDES};
use crate::providers::kubevirt::nodes::Kubelets;
use crate::providers::kubevirt::scenario::{CREATED, IMAGE, Side};

/// What the scenario is expected to have the provider do. Otherwise two providers that do nothing were equal.
const EXPECTED: [&str; 14] = [
    "create kubevirt.io/v1 virtualmachines",
    "create v1 secrets",
    "create v1 services",
    "delete kubevirt.io/v1 virtualmachineinstances",
    "delete kubevirt.io/v1 virtualmachines",
    "delete v1 secrets",
    "delete v1 services",
    "get cdi.kubevirt.io/v1beta1 datavolumes",
    "list rbac.authorization.k8s.io/v1 roles",
    "patch infrastructure.cluster.x-k8s.io/v1alpha1 kubevirtclusters/status",
    "patch infrastructure.cluster.x-k8s.io/v1alpha1 kubevirtmachines",
    "patch infrastructure.cluster.x-k8s.io/v1alpha1 kubevirtmachines/status",
    "watch cluster.x-k8s.io/v1beta1 clusters",
    "watch cluster.x-k8s.io/v1beta1 machines",
];

/// Compares the provider on both sides.
pub(crate) async fn compare() -> Result<()> {
    let mut testbed = Testbed::start("provider-kubevirt", Progress::detect()).await?;
    let outcome = compare_in(&mut testbed).await;
    testbed.finish(outcome)
}

async fn compare_in(testbed: &mut Testbed) -> Result<()> {
    // Before kube-controller-manager, whose garbage collector discovers new kinds only now and then.
    let machines = VirtualMachines::start(&testbed.admin).await?;
    let connection = Connection::default();
    let connections = [&connection, &connection];
    let comparison = Comparison::start(testbed, Provider::Kubevirt, connections).await?;
    let kubelets = Kubelets::start(&testbed.admin);
    let [(direct, one), (proxied, two)] = SIDES;
    let sides = [
        Side::new(testbed, direct, one).await?,
        Side::new(testbed, proxied, two).await?,
    ];
    let record = comparison.run(testbed, &sides, &EXPECTED).await?;
    drop(kubelets);
    // Every disk was filled from the image: none is a clone.
    let imports = machines.imports();
    ensure!(imports.get(IMAGE) == Some(&(2 * CREATED)), "{imports:?}");
    for verb in ["create", "delete"] {
        let machines = record.succeeded(&format!("{verb} kubevirt.io/v1 virtualmachines"));
        let services = record.succeeded(&format!("{verb} v1 services"));
        ensure!(
            (machines, services) == (CREATED, 1),
            "{verb}: {machines} virtual machines and {services} Services"
        );
    }
    Ok(())
}
