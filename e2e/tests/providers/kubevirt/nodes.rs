//! What the kubelets of virtual machines do: each registers a Node that is ready. The cluster that they join is the
//! testbed's own.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};
use testbed::client::{ApiClient, Patch, status_code};
use testbed::virtual_machines::MACHINES;
use tokio::task::JoinHandle;

const NODES: &str = "/api/v1/nodes";
/// How often new machines are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The kubelets of all virtual machines. Dropped, no further Node is registered.
#[derive(Debug)]
pub(crate) struct Kubelets(JoinHandle<()>);

// === impl Kubelets ===

impl Kubelets {
    /// Starts them.
    pub(crate) fn start(admin: &ApiClient) -> Self {
        Self(tokio::spawn(watch(admin.clone())))
    }
}

impl Drop for Kubelets {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A Node of that cluster, if it is there.
pub(crate) async fn find(admin: &ApiClient, name: &str) -> Result<Option<Value>> {
    admin.find(&format!("{NODES}/{name}")).await
}

async fn watch(admin: ApiClient) {
    let mut registered = BTreeSet::new();
    loop {
        if let Err(error) = look(&admin, &mut registered).await {
            eprintln!("the kubelets of virtual machines: {error:#}");
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// A kubelet registers its Node once: one that Cluster API has deleted stays deleted.
async fn look(admin: &ApiClient, registered: &mut BTreeSet<String>) -> Result<()> {
    for machine in admin.list(&MACHINES.all()).await? {
        let name = machine["metadata"]["name"].as_str().unwrap_or_default();
        if machine["status"]["ready"] == true && !registered.contains(name) {
            register(admin, name).await?;
            registered.insert(name.to_owned());
        }
    }
    Ok(())
}

async fn register(admin: &ApiClient, name: &str) -> Result<()> {
    let node = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": { "name": name, "labels": { "kubernetes.io/hostname": name } },
    });
    match admin.create(NODES, &node).await {
        Err(error) if status_code(&error) != Some(409) => return Err(error),
        _ => {}
    }
    let status = json!({ "status": { "conditions": [{
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "",
        "lastHeartbeatTime": "2026-11-22T00:00:00Z",
        "lastTransitionTime": "2026-11-22T00:00:00Z",
    }] } });
    let path = format!("{NODES}/{name}/status");
    admin.patch(&path, Patch::Merge, &status).await.map(drop)
}
