//! The stock provider for KubeVirt on private types, behind the proxy, requests what it requests on standard types
//! directly.
//!
//! Both run on one API server, each with its own core manager of Cluster API and its own namespace, and the same happens
//! to their clusters: machines are created, added, evicted and removed. KubeVirt is a stand-in, whose virtual machines
//! are objects only, and which the test's own kubelets make nodes of.
//!
//! The provider uses `v1beta1` of Cluster API's kinds, so that each of its reads of them is converted: behind the proxy,
//! by the product's webhook.

mod nodes;
mod provider;
mod record;
mod scenario;
mod versions;

use std::time::Duration;

use anyhow::{Result, ensure};
use api::group::CapiTypes;
use testbed::audit::{Event, Mark};
use testbed::cluster_api::Plan;
use testbed::crds;
use testbed::managers::Manager;
use testbed::progress::Progress;
use testbed::testbed::Testbed;
use testbed::virtual_machines::VirtualMachines;
use testbed::wait;

use crate::kubevirt_provider::nodes::Kubelets;
use crate::kubevirt_provider::provider::Provider;
use crate::kubevirt_provider::record::Record;
use crate::kubevirt_provider::scenario::{CREATED, IMAGE, Side};
use crate::kubevirt_provider::versions::Conversion;

/// The namespace of the provider on standard types, and of that on private ones.
const DIRECT: &str = "kubevirt-direct";
const PROXIED: &str = "kubevirt-proxied";
/// Longer than the provider's resync, which is a minute with a tenth of it added.
const REST: Duration = Duration::from_secs(75);
/// How long controllers may take to become idle, and for how long there must be no write to count as idle.
const SETTLED_WITHIN: Duration = Duration::from_mins(3);
const QUIET: Duration = Duration::from_secs(10);
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: cargo xtask soak kubevirt-provider"]
async fn the_stock_kubevirt_provider_makes_the_same_requests_behind_the_proxy() -> Result<()> {
    let mut testbed = Testbed::start("kubevirt-provider", Progress::detect()).await?;
    let outcome = compare(&mut testbed).await;
    testbed.finish(outcome)
}

async fn compare(testbed: &mut Testbed) -> Result<()> {
    // Before kube-controller-manager, whose garbage collector discovers new kinds only now and then.
    let machines = VirtualMachines::start(&testbed.admin).await?;
    let mut conversion = serve(testbed).await?;
    let kubelets = Kubelets::start(&testbed.admin);
    let mark = testbed.control_plane.audit.mark()?;

    let step = testbed.progress.step("starting both providers");
    let mut direct = start(testbed, &conversion, CapiTypes::Standard).await?;
    let mut proxied = start(testbed, &conversion, CapiTypes::Private).await?;
    let sides = [
        Side::new(testbed, CapiTypes::Standard, DIRECT).await?,
        Side::new(testbed, CapiTypes::Private, PROXIED).await?,
    ];
    step.done();

    let [one, two] = &sides;
    let step = testbed.progress.step("machines come and go, on both sides");
    tokio::try_join!(one.comes_up_and_scales(), two.comes_up_and_scales())?;
    // Every disk was filled from the image: none is a clone.
    let imports = machines.imports();
    ensure!(imports.get(IMAGE) == Some(&(2 * CREATED)), "{imports:?}");
    step.done();

    let step = testbed.progress.step("nothing is written at rest");
    nothing_is_written(testbed).await?;
    step.done();

    let step = testbed.progress.step("the clusters end, on both sides");
    tokio::try_join!(one.ends(), two.ends())?;
    step.done();

    for provider in [&mut direct, &mut proxied] {
        provider.check()?;
    }
    conversion.check()?;
    drop(kubelets);
    requests_are_equal(testbed, mark, &direct, &proxied)
}

/// Both sets of types in all versions, and a core manager for each.
async fn serve(testbed: &mut Testbed) -> Result<Conversion> {
    testbed.add(&Plan::legacy(DIRECT, &[Manager::Core])).await?;
    let others = [
        Manager::KubeadmBootstrap,
        Manager::KubeadmControlPlane,
        Manager::DevProvider,
    ];
    let core = others
        .into_iter()
        .fold(Plan::hosted(PROXIED), Plan::without);
    testbed.add(&core).await?;
    let step = testbed
        .progress
        .step("installing the provider's CRDs, and all versions of Cluster API's");
    for capi_types in [CapiTypes::Standard, CapiTypes::Private] {
        let definitions = crds::kubevirt(capi_types).await?;
        crds::install(&testbed.admin, &definitions).await?;
    }
    let conversion = Conversion::start(testbed).await?;
    step.done();
    // The nodes have no kubelets that renew their Leases.
    let controllers = "*,-node-lifecycle-controller";
    let manager = &mut testbed.control_plane.controller_manager;
    manager.add_flag("controllers", controllers);
    testbed.start_controller_manager().await?;
    Ok(conversion)
}

async fn start(
    testbed: &mut Testbed,
    conversion: &Conversion,
    capi_types: CapiTypes,
) -> Result<Provider> {
    let namespace = match capi_types {
        CapiTypes::Standard => DIRECT,
        CapiTypes::Private => PROXIED,
    };
    Provider::start(testbed, conversion, capi_types, namespace).await
}

/// Waits until all controllers are idle, and checks that they stay idle.
async fn nothing_is_written(testbed: &Testbed) -> Result<()> {
    wait::until("the last writes", SETTLED_WITHIN, async || {
        let mark = testbed.control_plane.audit.mark()?;
        wait::throughout("quiet", QUIET, async || no_writes(testbed, mark)).await
    })
    .await?;
    let mark = testbed.control_plane.audit.mark()?;
    wait::throughout("rest", REST, async || no_writes(testbed, mark)).await?;
    ensure!(
        testbed.control_plane.audit.mark()? != mark,
        "the audit log has nothing of the time at rest: it is read in the wrong place"
    );
    Ok(())
}

/// Fails with the writes in both namespaces since the mark.
fn no_writes(testbed: &Testbed, mark: Mark) -> Result<()> {
    let is_ours = |event: &Event| [DIRECT, PROXIED].contains(&event.object_ref.namespace.as_str());
    // The testbed renews the tokens of its service accounts, as a kubelet would.
    let is_renewal = |event: &Event| event.object_ref.subresource == "token";
    let events = testbed.control_plane.audit.since(mark)?;
    let written: Vec<_> = events
        .iter()
        .filter(|event| event.is_write() && is_ours(event) && !is_renewal(event))
        .map(Event::summary)
        .collect();
    ensure!(written.is_empty(), "{}", written.join("\n"));
    Ok(())
}

fn requests_are_equal(
    testbed: &Testbed,
    mark: Mark,
    direct: &Provider,
    proxied: &Provider,
) -> Result<()> {
    let step = testbed.progress.step("their requests are equal");
    let events = testbed.control_plane.audit.since(mark)?;
    let direct = Record::of(&events, &direct.username(), CapiTypes::Standard)?;
    let proxied = Record::of(&events, &proxied.username(), CapiTypes::Private)?;
    direct.has(&EXPECTED)?;
    direct.equals(&proxied)?;
    for verb in ["create", "delete"] {
        let machines = direct.succeeded(&format!("{verb} kubevirt.io/v1 virtualmachines"));
        let services = direct.succeeded(&format!("{verb} v1 services"));
        ensure!(
            (machines, services) == (CREATED, 1),
            "{verb}: {machines} virtual machines and {services} Services"
        );
    }
    step.done_with(&format!("{} different requests", direct.count()));
    Ok(())
}
