//! A hosted cluster from the inside, as its user sees it.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use serde_json::Value;

use super::{DEPLOYMENTS, Fixture};
use crate::client::ApiClient;
use crate::fixtures;
use crate::node::condition;

/// A hosted cluster's API.
#[derive(Debug, Clone)]
pub struct Guest {
    /// As its administrator.
    pub client: ApiClient,
    /// The same for kubectl.
    pub kubeconfig: PathBuf,
    /// The cluster's name, for messages.
    pub(super) of: String,
}

// === impl Guest ===

impl Guest {
    /// Its nodes.
    pub async fn nodes(&self) -> Result<Vec<Value>> {
        self.client.list("/api/v1/nodes").await
    }

    /// Waits until it has so many nodes, all of them ready.
    pub async fn has_nodes(&self, fixture: &Fixture, count: usize) -> Result<()> {
        let what = format!("{}: {count} workers have joined and are ready", self.of);
        fixture
            .stage(&what, async || {
                let nodes = self.nodes().await?;
                ensure!(nodes.len() == count, "there are {} nodes", nodes.len());
                nodes.iter().try_for_each(|node| condition(node, "Ready"))
            })
            .await
    }

    /// A Deployment that is created in it runs on a worker.
    pub async fn runs_a_workload(&self, fixture: &Fixture) -> Result<()> {
        let image = fixture.testbed.pause_image();
        let objects = fixtures::render("hosted_cluster/workload", &[("IMAGE", &image)])?;
        self.client.apply(&objects).await?;
        let path = DEPLOYMENTS.named("default", "workload");
        let what = format!("{}: a Deployment of the user's runs", self.of);
        fixture
            .stage(&what, async || {
                condition(&self.client.get(&path).await?, "Available")
            })
            .await
    }
}
