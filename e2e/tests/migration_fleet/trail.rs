//! How hosted clusters change: by a watch, so that nothing is missed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Result, ensure};
use api::conditions::ClusterCondition;
use futures::{StreamExt as _, pin_mut};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, WatchEvent, WatchParams};
use kube::core::GroupVersionKind;
use migration::phase::Phase;
use serde_json::{Value, json};
use testbed::client::ApiClient;
use testbed::conditions;
use tokio::task::JoinHandle;

use crate::migration_fleet::fixture::NAMESPACE;

/// What a cluster said at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) name: String,
    pub(crate) status: String,
    pub(crate) reason: String,
    pub(crate) message: String,
}

/// All that was said, in order.
#[derive(Debug)]
pub(crate) struct Trail {
    changes: Arc<Mutex<Vec<Change>>>,
    watching: JoinHandle<()>,
}

// === impl Trail ===

impl Trail {
    /// Begins to listen.
    pub(crate) fn begin(admin: &ApiClient) -> Self {
        let changes: Arc<Mutex<Vec<Change>>> = Arc::default();
        let watching = tokio::spawn(listen(admin.clone(), Arc::clone(&changes)));
        Self { changes, watching }
    }

    /// How much was said so far.
    pub(crate) fn mark(&self) -> usize {
        lock(&self.changes).len()
    }

    /// What a cluster said since.
    pub(crate) fn since(&self, mark: usize, name: &str) -> Vec<Change> {
        let changes = lock(&self.changes);
        let since = changes.iter().skip(mark).filter(|one| one.name == name);
        since.cloned().collect()
    }

    /// Fails unless a cluster went through the phases of one whole migration, in order, none twice and none missing.
    pub(crate) fn is_one_migration(&self, mark: usize, name: &str) -> Result<()> {
        let changes = self.since(mark, name);
        let phases = changes.iter().filter(|one| one.status == "Unknown");
        let mut phases: Vec<_> = phases.map(|one| one.reason.clone()).collect();
        phases.dedup();
        let expected: Vec<_> = Phase::ALL.iter().skip(1).map(|one| one.name()).collect();
        ensure!(phases == expected, "{name} went through {phases:?}");
        let last = changes.last().map(|one| one.status.as_str());
        ensure!(last != Some("Unknown"), "{name} ended with {last:?}");
        Ok(())
    }
}

impl Drop for Trail {
    fn drop(&mut self) {
        self.watching.abort();
    }
}

fn lock(changes: &Mutex<Vec<Change>>) -> MutexGuard<'_, Vec<Change>> {
    changes.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn listen(admin: ApiClient, changes: Arc<Mutex<Vec<Change>>>) {
    let mut from = "0".to_owned();
    loop {
        drop(watch(&admin, &mut from, &changes).await);
    }
}

async fn watch(admin: &ApiClient, from: &mut String, changes: &Mutex<Vec<Change>>) -> Result<()> {
    let kind = GroupVersionKind::gvk("hypershift.openshift.io", "v1beta1", "HostedCluster");
    let kind = ApiResource::from_gvk(&kind);
    let api: Api<DynamicObject> = Api::namespaced_with(admin.kube().clone(), NAMESPACE, &kind);
    let events = api.watch(&WatchParams::default(), from).await?;
    pin_mut!(events);
    while let Some(event) = events.next().await {
        let (WatchEvent::Added(object) | WatchEvent::Modified(object)) = event? else {
            continue;
        };
        from.clone_from(&object.metadata.resource_version.clone().unwrap_or_default());
        let Some(new) = read(&json!(object)) else {
            continue;
        };
        let mut changes = lock(changes);
        if changes.iter().rfind(|one| one.name == new.name) != Some(&new) {
            changes.push(new);
        }
    }
    Ok(())
}

fn read(cluster: &Value) -> Option<Change> {
    let found = conditions::find(cluster, ClusterCondition::PrivateCapiTypes.as_str())?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Some(Change {
        name: text(&cluster["metadata"]["name"]),
        status: text(&found["status"]),
        reason: text(&found["reason"]),
        message: text(&found["message"]),
    })
}
