//! What makes Services and their names work in a hosted cluster: kube-proxy on its machines, and a name service. In
//! OpenShift, operators bring both, whose programs cannot be had.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::{Cluster, Fixture, Guest};
use crate::client::{Patch, Resource};
use crate::fixtures;

const DAEMON_SETS: Resource<'_> = Resource::new("apps/v1", "daemonsets");
/// Its address: the tenth of the Services that the command gives a cluster.
const ADDRESS: &str = "172.31.0.10";

impl Cluster<'_> {
    /// Has machines that its pool gets from now on run kube-proxy.
    pub(super) async fn machines_run_kube_proxy(&self) -> Result<()> {
        let admin = &self.fixture.testbed.admin;
        let objects = fixtures::render("hosted_cluster/kube-proxy", &[])?;
        admin.apply(&objects).await?;
        let config = json!({ "spec": { "config": [{ "name": "kube-proxy" }] } });
        let path = self.pool_path();
        self.stage("its pool is known", async || {
            let changed = admin.patch(&path, Patch::Merge, &config).await;
            changed.map(drop)
        })
        .await
    }
}

impl Guest {
    /// Applies what OpenShift's operators would. Without it, no pod finds the API server by its name.
    pub(super) async fn gets_a_network(&self, fixture: &Fixture) -> Result<()> {
        let image = fixture.testbed.name_service_image();
        let values = [("COREDNS_IMAGE", image.as_str()), ("NAME_SERVICE", ADDRESS)];
        let objects = fixtures::render("hosted_cluster/network", &values)?;
        self.client.apply(&objects).await
    }

    /// Waits until pods on all of its nodes find Services by their names.
    pub async fn has_a_network(&self, fixture: &Fixture) -> Result<()> {
        let path = DAEMON_SETS.named("openshift-dns", "dns-default");
        let what = format!("{}: its name service runs on all nodes", self.of);
        fixture
            .stage(&what, async || {
                let found = self.client.get(&path).await?;
                let count = |field: &str| found["status"][field].as_u64().unwrap_or_default();
                let nodes = u64::try_from(self.nodes().await?.len()).context("nodes")?;
                ensure!(
                    nodes > 0 && count("numberAvailable") == nodes,
                    "{} of {nodes}",
                    count("numberAvailable")
                );
                Ok(())
            })
            .await
    }
}
