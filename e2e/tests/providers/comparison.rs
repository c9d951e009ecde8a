//! Two providers beside each other, one on standard types directly and one on private types behind the proxy.

use std::time::Duration;

use anyhow::{Result, ensure};
use api::group::CapiTypes;
use testbed::audit::{Event, Mark};
use testbed::cluster_api::Plan;
use testbed::crds;
use testbed::managers::Manager;
use testbed::providers::Provider;
use testbed::testbed::Testbed;
use testbed::wait;

use crate::providers::cloud::{self, Connection};
use crate::providers::provider::Running;
use crate::providers::record::Record;
use crate::providers::versions::Conversion;

/// The namespace of the provider on standard types, and of that on private ones.
pub(crate) const DIRECT: &str = "provider-direct";
pub(crate) const PROXIED: &str = "provider-proxied";
/// Longer than the resync of any provider but those that take ten minutes: a minute with a tenth of it added.
const REST: Duration = Duration::from_secs(75);
/// How long controllers may take to become idle, and for how long there must be no write to count as idle.
const SETTLED_WITHIN: Duration = Duration::from_mins(3);
const QUIET: Duration = Duration::from_secs(10);

/// What happens to the objects of one side. Its steps are the same on both sides.
pub(crate) trait Scenario {
    /// Its cluster gets what it is to have, and stays so.
    async fn comes_up(&self) -> Result<()>;
    /// Its cluster is deleted.
    async fn ends(&self) -> Result<()>;
}

/// Two running providers.
#[derive(Debug)]
pub(crate) struct Comparison {
    conversion: Conversion,
    mark: Mark,
    direct: Running,
    proxied: Running,
}

/// Types with the namespace that has them.
pub(crate) const SIDES: [(CapiTypes, &str); 2] =
    [(CapiTypes::Standard, DIRECT), (CapiTypes::Private, PROXIED)];

// === impl Comparison ===

impl Comparison {
    /// Serves all kinds with both types, and starts core managers and providers, each with the connection to its cloud.
    pub(crate) async fn start(
        testbed: &mut Testbed,
        provider: Provider,
        [direct, proxied]: [&Connection; 2],
    ) -> Result<Self> {
        let conversion = serve(testbed, provider).await?;
        let mark = testbed.control_plane.audit.mark()?;
        let step = testbed.progress.step("starting both providers");
        let [one, two] = SIDES;
        let direct = Running::start(testbed, &conversion, provider, one, direct).await?;
        let proxied = Running::start(testbed, &conversion, provider, two, proxied).await?;
        step.done();
        Ok(Self {
            conversion,
            mark,
            direct,
            proxied,
        })
    }

    /// Has both sides come up, rest and end, and compares what their providers requested. Gives what both did.
    pub(crate) async fn run<S: Scenario>(
        mut self,
        testbed: &Testbed,
        [one, two]: &[S; 2],
        expected: &[&str],
    ) -> Result<Record> {
        let step = testbed.progress.step("clusters come up, on both sides");
        tokio::try_join!(one.comes_up(), two.comes_up())?;
        step.done();

        let step = testbed.progress.step("nothing is written at rest");
        nothing_is_written(testbed).await?;
        step.done();

        let step = testbed.progress.step("the clusters end, on both sides");
        tokio::try_join!(one.ends(), two.ends())?;
        step.done();

        self.direct.check()?;
        self.proxied.check()?;
        self.conversion.check()?;
        self.requests_are_equal(testbed, expected)
    }

    fn requests_are_equal(&self, testbed: &Testbed, expected: &[&str]) -> Result<Record> {
        let step = testbed.progress.step("their requests are equal");
        let events = testbed.control_plane.audit.since(self.mark)?;
        let direct = Record::of(&events, &self.direct.username(), CapiTypes::Standard)?;
        let proxied = Record::of(&events, &self.proxied.username(), CapiTypes::Private)?;
        direct.has(expected)?;
        direct.equals(&proxied)?;
        step.done_with(&format!("{} different requests", direct.count()));
        Ok(direct)
    }
}

/// Both sets of types in all versions, and a core manager for each.
async fn serve(testbed: &mut Testbed, provider: Provider) -> Result<Conversion> {
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
    for (capi_types, _) in SIDES {
        let mut definitions = crds::provider(provider, capi_types).await?;
        cloud::accept_plain_http(&mut definitions);
        crds::install(&testbed.admin, &definitions).await?;
    }
    let conversion = Conversion::start(testbed).await?;
    step.done();
    // Nodes of virtual machines have no kubelets that renew their Leases.
    let controllers = "*,-node-lifecycle-controller";
    let manager = &mut testbed.control_plane.controller_manager;
    manager.add_flag("controllers", controllers);
    testbed.start_controller_manager().await?;
    Ok(conversion)
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
