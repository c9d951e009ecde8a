//! The managers of the clusters: stopped on one side, started on the other.

use anyhow::{Result, ensure};
use api::group::Side;
use testbed::cluster_api::Plan;
use testbed::cluster_api::lasting::LastingProvider;
use testbed::managers::Manager;
use testbed::testbed::Testbed;

/// Those that are restarted. The provider only loses its way to the API server, as it has its cloud in memory.
const MORTAL: [Manager; 3] = [
    Manager::Core,
    Manager::KubeadmBootstrap,
    Manager::KubeadmControlPlane,
];

/// What keeps the clusters of one namespace.
#[derive(Debug)]
pub(crate) struct Managed {
    namespace: String,
    provider: LastingProvider,
    side: Side,
}

impl Managed {
    /// Starts it on standard types.
    pub(crate) async fn start(testbed: &mut Testbed, namespace: &str) -> Result<Self> {
        let provider = testbed.lasting_provider(namespace).await?;
        testbed.add(&plan(namespace, Side::Standard)).await?;
        Ok(Self {
            namespace: namespace.to_owned(),
            provider,
            side: Side::Standard,
        })
    }

    /// There are no more writes.
    pub(crate) fn stop(&mut self, testbed: &mut Testbed) -> Result<()> {
        self.check(testbed)?;
        testbed.end_in(plan(&self.namespace, self.side).namespace());
        self.provider.cut_off();
        Ok(())
    }

    /// The same programs, on this side.
    pub(crate) async fn go_on(&mut self, testbed: &mut Testbed, side: Side) -> Result<()> {
        self.side = side;
        testbed.add(&plan(&self.namespace, side)).await?;
        self.provider.work_on(side, &testbed.admin).await
    }

    /// Fails when one of them has ended by itself.
    pub(crate) fn check(&mut self, testbed: &mut Testbed) -> Result<()> {
        self.provider.service.check()?;
        let world = testbed.world(self.side)?;
        ensure!(world.managers().len() == MORTAL.len());
        world.check()
    }
}

fn plan(namespace: &str, side: Side) -> Plan {
    match side {
        Side::Standard => Plan::legacy(namespace, &MORTAL),
        Side::Private => Plan::hosted(namespace).without(Manager::DevProvider),
    }
}
