//! Machines of an Agent service: the hosts, and the objects by which the service and its provider know them.

use anyhow::{Result, ensure};
use api::group::CapiTypes;
use serde_json::json;
use testbed::agents::{AGENTS, AgentService, NAMESPACE};
use testbed::audit::Mark;
use testbed::client::Resource;
use testbed::hosted::{Cluster, Fixture, Identities, Platform};
use testbed::registry;

use super::machines::Machines;
use super::objects::{self, identity};
use super::processes;

/// The sizes of the hosts, of which the cluster has one at first, and both at its end.
const SIZES: [&str; 2] = ["large", "large"];
const PROVIDER: &str = "capi-provider.agent-install.openshift.io/v1beta1";
/// What the control plane's namespace has of the provider and of the service. The provider's objects get other owners
/// by a migration, which is no other generation.
const KEPT: [Resource<'_>; 5] = [
    Resource::new(PROVIDER, "agentclusters"),
    Resource::new(PROVIDER, "agentmachines"),
    Resource::new(PROVIDER, "agentmachinetemplates"),
    Resource::new("hive.openshift.io/v1", "clusterdeployments"),
    Resource::new(
        "extensions.hive.openshift.io/v1beta1",
        "agentclusterinstalls",
    ),
];
/// The groups of the service.
const SERVICE: [&str; 3] = [
    "agent-install.openshift.io",
    "extensions.hive.openshift.io",
    "hive.openshift.io",
];

/// The hosts of an Agent service.
pub(crate) struct Hosts<'a> {
    fixture: &'a Fixture,
    service: AgentService,
}

// === impl Hosts ===

impl<'a> Hosts<'a> {
    /// Starts the service.
    pub(crate) async fn start(fixture: &'a Fixture) -> Result<Self> {
        let step = fixture.testbed.progress.step("an Agent service with hosts");
        let service = AgentService::start(&fixture.testbed, &SIZES).await?;
        step.done();
        Ok(Self { fixture, service })
    }
}

impl Machines for Hosts<'_> {
    type Record = Mark;

    fn platform(&self) -> Platform<'_> {
        Platform::Agent(&self.service)
    }

    fn flags(&self, _: CapiTypes) -> Vec<String> {
        let variables = [
            ("INSECURE_REGISTRIES", registry::NAME),
            ("IMAGE_AGENT_CAPI_PROVIDER", self.service.provider.as_str()),
        ];
        let flags =
            variables.map(|(name, value)| format!("--additional-operator-env-vars={name}={value}"));
        flags.into()
    }

    async fn extend_standard(&self) -> Result<()> {
        // Its stand-in uses the version that is stored.
        Ok(())
    }

    async fn identify(&self, cluster: &Cluster<'_>, all: &mut Identities) -> Result<()> {
        let (admin, namespace) = (&self.fixture.testbed.admin, cluster.namespace());
        for kind in KEPT {
            let objects = admin.list(&kind.within(&namespace)).await?;
            ensure!(!objects.is_empty(), "there are no {}", kind.plural);
            for object in objects {
                all.add(kind.plural, &object, identity(&object, "generation"));
            }
        }
        for agent in admin.list(&AGENTS.within(NAMESPACE)).await? {
            // Its labels say whose it is, and it has no new generation because of them.
            all.add("agent", &agent, identity(&agent, "resourceVersion"));
        }
        let hosts = self.service.pids(&namespace);
        ensure!(!hosts.is_empty(), "no host runs for {namespace}");
        for (name, first) in hosts {
            let host = json!({ "metadata": { "name": name } });
            all.add("host", &host, processes::lasting(first)?);
        }
        Ok(())
    }

    async fn record(&self) -> Result<Mark> {
        self.fixture.testbed.control_plane.audit.mark()
    }

    async fn are_untouched(&self, record: Mark) -> Result<String> {
        let reads = objects::are_untouched(self.fixture, record, &SERVICE)?;
        Ok(format!(
            "the Agent service saw {reads} requests, none of which changes anything"
        ))
    }

    fn said(&self) -> String {
        self.service.said()
    }
}
