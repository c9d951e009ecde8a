//! What a management cluster does for control planes, where there are no nodes: workloads become available, Services and
//! Routes get addresses, and the control-plane-operator of each hosted cluster runs as a process.
//!
//! Nothing here decides anything: objects get the status that their controllers would write on success.

mod cluster;
mod desired;
mod kinds;
mod operands;
mod operator;
mod outcome;
mod status;

use std::time::Duration;

use anyhow::Result;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _, future};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, WatchEvent, WatchParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::client::ApiClient;

pub use cluster::{Programs, SimulatedCluster};
pub use desired::{desired, desired_with_all};
pub use kinds::{Releases, install_all_kinds, install_kinds, install_preview_kinds};
pub use operator::{ControlPlaneOperator, Launched};
use outcome::Outcome;
pub use status::control_plane_comes_up;

/// Before a watch that has ended is begun again.
const AGAIN: Duration = Duration::from_millis(200);

/// The kinds that are looked after: group, version, kind, and what becomes of an object.
const KINDS: [(&str, &str, &str, Outcome); 5] = [
    ("apps", "v1", "Deployment", outcome::deployment),
    ("apps", "v1", "StatefulSet", outcome::stateful_set),
    ("batch", "v1", "Job", outcome::job),
    ("", "v1", "Service", outcome::service),
    ("route.openshift.io", "v1", "Route", outcome::route),
];

/// Runs until it is dropped.
#[derive(Debug)]
pub struct Simulation {
    loops: Vec<JoinHandle<()>>,
}

// === impl Simulation ===

impl Simulation {
    /// Begins.
    pub fn start(admin: &ApiClient) -> Self {
        let loops = KINDS.map(|(group, version, kind, outcome)| {
            let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
            let admin = admin.clone();
            let watch = move || look_after(admin.clone(), resource.clone(), outcome);
            tokio::spawn(again(watch))
        });
        let mut loops = Vec::from(loops);
        let admin = admin.clone();
        let watch = move || operands::follow_control_planes(admin.clone());
        loops.push(tokio::spawn(again(watch)));
        Self { loops }
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        for one in &self.loops {
            one.abort();
        }
    }
}

/// Watches without an end.
async fn again<F: Future<Output = Result<()>>>(watch: impl Fn() -> F) {
    loop {
        // A watch that fails is started again, from what is there then.
        drop(watch().await);
        tokio::time::sleep(AGAIN).await;
    }
}

/// The objects of a kind as they are added and changed, until the watch ends.
async fn changes(
    admin: &ApiClient,
    resource: &ApiResource,
) -> Result<BoxStream<'static, kube::Result<DynamicObject>>> {
    let all: Api<DynamicObject> = Api::all_with(admin.kube().clone(), resource);
    let events = all.watch(&WatchParams::default(), "0").await?;
    let objects = events.try_filter_map(|event| {
        future::ok(match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => Some(object),
            _ => None,
        })
    });
    Ok(objects.boxed())
}

async fn look_after(admin: ApiClient, resource: ApiResource, outcome: Outcome) -> Result<()> {
    let mut objects = changes(&admin, &resource).await?;
    while let Some(object) = objects.try_next().await? {
        if object.metadata.deletion_timestamp.is_none() {
            // Who has changed it meanwhile sends another event.
            drop(write_outcome(&admin, &resource, &object, outcome).await);
        }
    }
    Ok(())
}

async fn write_outcome(
    admin: &ApiClient,
    resource: &ApiResource,
    object: &DynamicObject,
    outcome: Outcome,
) -> Result<()> {
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    let name = object.metadata.name.as_deref().unwrap_or_default();
    let client = admin.kube().clone();
    let api: Api<DynamicObject> = Api::namespaced_with(client, namespace, resource);
    let object = json!(object);
    if resource.kind == "Deployment" {
        operands::follow_operator(admin, &object).await?;
    }
    let due = outcome(&object);
    let params = PatchParams::default();
    if let Some(spec) = due.spec {
        let patch = Patch::Merge(json!({ "spec": spec }));
        api.patch(name, &params, &patch).await?;
    }
    admin.apply(&due.made).await?;
    if let Some(status) = due.status {
        let patch: Patch<Value> = Patch::Merge(json!({ "status": status }));
        api.patch_status(name, &params, &patch).await?;
    }
    Ok(())
}
