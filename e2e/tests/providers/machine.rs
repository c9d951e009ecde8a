//! One cluster and one machine of a platform, on both sides. All objects have their standard names: only the client knows
//! the difference.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use testbed::client::{ApiClient, Patch, Resource};
use testbed::cluster::{CLUSTERS, MACHINES};
use testbed::progress::Progress;
use testbed::testbed::Testbed;
use testbed::{fixtures, wait};

use crate::providers::cloud::{Connection, FakeCloud};
use crate::providers::comparison::{Comparison, SIDES, Scenario};
use crate::providers::guest::{self, GUEST, Guest};
use crate::providers::platforms::Platform;

/// The name of the machine, and of its infrastructure.
const WORKER: &str = "worker";
/// Some providers look at their machines again after a minute.
const WITHIN: Duration = Duration::from_mins(4);

/// The objects of one side.
#[derive(Debug)]
struct Side<'a> {
    platform: &'a Platform,
    namespace: &'static str,
    /// Standard names: directly, or through a proxy.
    view: ApiClient,
    guest: Guest,
    connection: &'a Connection,
}

/// Compares the provider of a platform on both sides.
pub(crate) async fn compare(platform: &Platform) -> Result<()> {
    let name = format!("provider-{}", platform.provider.name());
    let mut testbed = Testbed::start(&name, Progress::detect()).await?;
    let outcome = compare_in(&mut testbed, platform).await;
    testbed.finish(outcome)
}

async fn compare_in(testbed: &mut Testbed, platform: &Platform) -> Result<()> {
    let [(direct, one), (proxied, two)] = SIDES;
    let clouds = [
        FakeCloud::start(platform.cloud, testbed, one).await?,
        FakeCloud::start(platform.cloud, testbed, two).await?,
    ];
    let connections = clouds.each_ref().map(|cloud| &cloud.connection);
    let comparison = Comparison::start(testbed, platform.provider, connections).await?;
    let [first, second] = connections;
    let sides = [
        Side {
            platform,
            namespace: one,
            view: testbed.view_of(direct).await?,
            guest: Guest::new(testbed)?,
            connection: first,
        },
        Side {
            platform,
            namespace: two,
            view: testbed.view_of(proxied).await?,
            guest: Guest::new(testbed)?,
            connection: second,
        },
    ];
    comparison.run(testbed, &sides, platform.expected).await?;
    Ok(())
}

// === impl Side ===

impl Scenario for Side<'_> {
    async fn comes_up(&self) -> Result<()> {
        self.view.apply(&self.guest.secrets(self.namespace)).await?;
        self.view.apply(&self.objects()?).await?;
        let infrastructure = (self.platform.infrastructure)();
        let path = self.platform.clusters.named(self.namespace, GUEST) + "/status";
        self.view
            .patch(&path, Patch::Merge, &infrastructure)
            .await?;
        self.until("the cluster to be provisioned", async || {
            let status = self.get(CLUSTERS, GUEST).await?["status"].take();
            let is_provisioned = &status["initialization"]["infrastructureProvisioned"];
            ensure!(is_provisioned == true, "{status}");
            Ok(())
        })
        .await?;
        let path = CLUSTERS.named(self.namespace, GUEST) + "/status";
        self.view
            .patch(&path, Patch::Merge, &guest::initialized())
            .await?;
        self.until("the machine", async || self.runs().await).await
    }

    async fn ends(&self) -> Result<()> {
        let path = CLUSTERS.named(self.namespace, GUEST);
        self.view.delete(&path).await?;
        let own = [
            CLUSTERS,
            MACHINES,
            self.platform.clusters,
            self.platform.machines,
        ];
        self.until("all objects to be gone", async || {
            for resource in own.iter().chain(self.platform.others) {
                let left = self.view.list(&resource.within(self.namespace)).await?;
                ensure!(
                    left.is_empty(),
                    "there are still {} {}",
                    left.len(),
                    resource.plural
                );
            }
            Ok(())
        })
        .await
    }
}

impl Side<'_> {
    fn objects(&self) -> Result<Vec<Value>> {
        let mut values = vec![
            ("NAMESPACE", self.namespace),
            ("HOST", self.guest.host.as_str()),
            ("PORT", self.guest.port.as_str()),
        ];
        let own = self.connection.values.iter();
        values.extend(own.map(|(name, value)| (*name, value.as_str())));
        let fixture = format!("providers/{}", self.platform.provider.name());
        fixtures::render(&fixture, &values)
    }

    /// The provider has made a machine in its cloud, and Cluster API has taken over what it reports of it.
    async fn runs(&self) -> Result<()> {
        let infrastructure = self.get(self.platform.machines, WORKER).await?;
        let status = &infrastructure["status"];
        ensure!(status["ready"] == true, "{status}");
        let machine = self.get(MACHINES, WORKER).await?;
        let id = machine["spec"]["providerID"].as_str();
        let id = id.with_context(|| format!("it has no id: {}", machine["status"]))?;
        ensure!(
            infrastructure["spec"]["providerID"] == id,
            "the machine has the id {id}, and its infrastructure {}",
            infrastructure["spec"]["providerID"]
        );
        let addresses = machine["status"]["addresses"].as_array();
        let has_address = addresses
            .into_iter()
            .flatten()
            .any(|one| one["type"] == "InternalIP");
        ensure!(has_address, "it has no address: {}", machine["status"]);
        let phase = &machine["status"]["phase"];
        ensure!(phase == "Provisioned", "it is {phase}");
        Ok(())
    }

    async fn get(&self, resource: Resource<'_>, name: &str) -> Result<Value> {
        self.view.get(&resource.named(self.namespace, name)).await
    }

    async fn until(&self, what: &str, probe: impl AsyncFnMut() -> Result<()>) -> Result<()> {
        let what = format!("{what} in {}", self.namespace);
        wait::until(&what, WITHIN, probe).await
    }
}
