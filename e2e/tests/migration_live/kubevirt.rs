//! Virtual machines of KubeVirt: the objects by which it knows them, and those that their provider has of them.

use anyhow::{Result, ensure};
use api::group::{self, CapiTypes};
use testbed::audit::Mark;
use testbed::client::Resource;
use testbed::crds;
use testbed::hosted::{Cluster, Fixture, Identities, Platform, SECRETS};
use testbed::providers::Provider;
use testbed::virtual_machines::{self, DATA_VOLUMES, INSTANCES, MACHINES, VirtualMachines};

use super::conversion;
use super::machines::Machines;
use super::objects::{self, identity};

/// What KubeVirt and its importer have of the machines, in the namespace of the control plane. Their pods are known as
/// all pods there are.
const KEPT: [Resource<'_>; 3] = [MACHINES, INSTANCES, DATA_VOLUMES];
/// Their groups.
const GROUPS: [&str; 3] = ["cdi.kubevirt.io", "kubevirt.io", "subresources.kubevirt.io"];
/// What the provider has of them, which a migration creates in the other group with the same description.
const MOVED: [&str; 3] = [
    "kubevirtclusters",
    "kubevirtmachines",
    "kubevirtmachinetemplates",
];
const VERSION: &str = "v1alpha1";
/// How the names of the Secrets end that machines boot with. The provider makes them of other Secrets.
const USER_DATA: &str = "-userdata";
/// The flag of an installation that any types have. The others are about private ones.
const VARIABLES: &str = "--additional-operator-env-vars=";

/// The virtual machines of KubeVirt's stand-in, with the stock provider.
pub(crate) struct VirtualHosts<'a> {
    fixture: &'a Fixture,
    machines: VirtualMachines,
    /// The image of the provider.
    provider: String,
}

// === impl VirtualHosts ===

impl<'a> VirtualHosts<'a> {
    /// Starts KubeVirt, and has the provider's standard kinds served, which the platform of a testbed does not bring.
    /// The private ones are installed with the operators.
    pub(crate) async fn start(fixture: &'a Fixture) -> Result<Self> {
        let testbed = &fixture.testbed;
        let step = testbed.progress.step("KubeVirt and its provider");
        let kinds = crds::provider(Provider::Kubevirt, CapiTypes::Standard).await?;
        crds::install(&testbed.admin, &kinds).await?;
        let machines = VirtualMachines::start_on(testbed).await?;
        let provider = virtual_machines::provider_image(testbed).await?;
        step.done();
        Ok(Self {
            fixture,
            machines,
            provider,
        })
    }
}

impl Machines for VirtualHosts<'_> {
    type Record = Mark;

    fn platform(&self) -> Platform<'_> {
        Platform::Kubevirt(&self.machines)
    }

    fn flags(&self, types: CapiTypes) -> Vec<String> {
        let mut flags = self.fixture.flags_for_kubevirt(&self.provider);
        if types == CapiTypes::Standard {
            flags.retain(|flag| flag.starts_with(VARIABLES));
        }
        flags
    }

    async fn extend_standard(&self) -> Result<()> {
        conversion::serve_every_version(self.fixture).await
    }

    async fn identify(&self, cluster: &Cluster<'_>, all: &mut Identities) -> Result<()> {
        let (admin, namespace) = (&self.fixture.testbed.admin, cluster.namespace());
        for kind in KEPT {
            let found = admin.list(&kind.within(&namespace)).await?;
            ensure!(!found.is_empty(), "there are no {}", kind.plural);
            for object in found {
                // Nothing of it changes, not even its status.
                all.add(kind.plural, &object, identity(&object, "resourceVersion"));
            }
        }
        let version = format!("{}/{VERSION}", group::infrastructure(cluster.capi_types()));
        for plural in MOVED {
            let kind = Resource::new(&version, plural);
            let found = admin.list(&kind.within(&namespace)).await?;
            ensure!(!found.is_empty(), "there are no {plural} of {version}");
            for object in found {
                all.add(plural, &object, object["spec"].to_string());
            }
        }
        let mut secrets = admin.list(&SECRETS.within(&namespace)).await?;
        secrets.retain(|secret| {
            let name = secret["metadata"]["name"].as_str();
            name.is_some_and(|name| name.ends_with(USER_DATA))
        });
        ensure!(!secrets.is_empty(), "there are no Secrets *{USER_DATA}");
        for secret in secrets {
            all.add("secret", &secret, identity(&secret, "resourceVersion"));
        }
        Ok(())
    }

    async fn record(&self) -> Result<Mark> {
        self.fixture.testbed.control_plane.audit.mark()
    }

    async fn are_untouched(&self, record: Mark) -> Result<String> {
        let reads = objects::are_untouched(self.fixture, record, &GROUPS)?;
        Ok(format!(
            "KubeVirt and its importer saw {reads} requests, none of which changes anything"
        ))
    }

    fn said(&self) -> String {
        self.machines.said()
    }
}
