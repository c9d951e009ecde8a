//! The managers of the clusters: stopped on one side, started on the other.

use anyhow::{Result, ensure};
use api::group::CapiTypes;
use testbed::cluster_api::Plan;
use testbed::cluster_api::lasting::LastingProvider;
use testbed::managers::Manager;
use testbed::testbed::Testbed;

/// Those that are restarted. The provider only loses its way to the API server, as it has its cloud in memory.
const MANAGERS: [Manager; 3] = [
    Manager::Core,
    Manager::KubeadmBootstrap,
    Manager::KubeadmControlPlane,
];

/// What keeps the clusters of one namespace.
#[derive(Debug)]
pub(crate) struct Managed {
    namespace: String,
    provider: LastingProvider,
    capi_types: CapiTypes,
}

impl Managed {
    /// Starts it on standard types.
    pub(crate) async fn start(testbed: &mut Testbed, namespace: &str) -> Result<Self> {
        let provider = testbed.lasting_provider(namespace).await?;
        testbed.add(&plan(namespace, CapiTypes::Standard)).await?;
        Ok(Self {
            namespace: namespace.to_owned(),
            provider,
            capi_types: CapiTypes::Standard,
        })
    }

    /// There are no more writes.
    pub(crate) fn stop(&mut self, testbed: &mut Testbed) -> Result<()> {
        self.check(testbed)?;
        testbed.end_in(plan(&self.namespace, self.capi_types).namespace());
        self.provider.cut_off();
        Ok(())
    }

    /// The same programs, on this side.
    pub(crate) async fn go_on(
        &mut self,
        testbed: &mut Testbed,
        capi_types: CapiTypes,
    ) -> Result<()> {
        self.capi_types = capi_types;
        testbed.add(&plan(&self.namespace, capi_types)).await?;
        self.provider.work_on(capi_types, &testbed.admin).await
    }

    /// Fails when one of them has ended by itself.
    pub(crate) fn check(&mut self, testbed: &mut Testbed) -> Result<()> {
        self.provider.service.check()?;
        let cluster_api = testbed.cluster_api(self.capi_types)?;
        ensure!(cluster_api.managers().len() == MANAGERS.len());
        cluster_api.check()
    }
}

fn plan(namespace: &str, capi_types: CapiTypes) -> Plan {
    match capi_types {
        CapiTypes::Standard => Plan::legacy(namespace, &MANAGERS),
        CapiTypes::Private => Plan::hosted(namespace).without(Manager::DevProvider),
    }
}
