//! Whether a provider would have deleted something: by watches of all kinds that stand for a machine or an image. An object
//! that is being deleted has its provider's finalizer until the provider has done its part.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Result, ensure};
use api::group::{self, CapiTypes};
use futures::{StreamExt as _, pin_mut};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, WatchEvent, WatchParams};
use kube::core::GroupVersionKind;
use testbed::client::ApiClient;
use tokio::task::JoinHandle;

use crate::migration_fleet::poison;

/// Kinds of Cluster API's groups: before the suffix of the group, the version, the kind.
const MOVED: [(&str, &str, &str); 9] = [
    ("", "v1beta2", "Machine"),
    ("infrastructure.", "v1beta2", "AWSMachine"),
    ("infrastructure.", "v1beta1", "AzureMachine"),
    ("infrastructure.", "v1beta1", "GCPMachine"),
    ("infrastructure.", "v1alpha1", "KubevirtMachine"),
    ("infrastructure.", "v1beta1", "OpenStackMachine"),
    ("infrastructure.", "v1alpha1", "OpenStackServer"),
    ("infrastructure.", "v1beta2", "IBMPowerVSMachine"),
    ("infrastructure.", "v1beta2", "IBMPowerVSImage"),
];
/// Kinds that do not move: they are not deleted at all.
const KEPT: [(&str, &str, &str); 2] = [
    (
        "capi-provider.agent-install.openshift.io",
        "v1beta1",
        "AgentMachine",
    ),
    ("openstack.k-orc.cloud", "v1alpha1", "Image"),
];
/// Finalizers by which the API server orders deletions.
const SERVERS_OWN: [&str; 2] = ["orphan", "foregroundDeletion"];
/// Before a watch that has ended is begun again.
const AGAIN: Duration = Duration::from_millis(200);

/// What was seen, since the watches began.
#[derive(Debug)]
pub(crate) struct Deletions {
    seen: Arc<Mutex<BTreeSet<String>>>,
    watching: Vec<JoinHandle<()>>,
}

/// A kind, and whether its objects are moved.
#[derive(Debug)]
struct Watched {
    resource: ApiResource,
    is_moved: bool,
}

// === impl Deletions ===

impl Deletions {
    /// Begins to watch.
    pub(crate) fn watch(admin: &ApiClient) -> Self {
        let seen: Arc<Mutex<BTreeSet<String>>> = Arc::default();
        let watching = watched()
            .into_iter()
            .map(|watched| tokio::spawn(again(watched, admin.clone(), Arc::clone(&seen))))
            .collect();
        Self { seen, watching }
    }

    /// Fails if a provider would have deleted something.
    pub(crate) fn are_none(&self) -> Result<()> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        ensure!(seen.is_empty(), "m01: providers see deletions: {seen:#?}");
        Ok(())
    }
}

impl Drop for Deletions {
    fn drop(&mut self) {
        for one in &self.watching {
            one.abort();
        }
    }
}

/// Watches without an end.
async fn again(watched: Watched, admin: ApiClient, seen: Arc<Mutex<BTreeSet<String>>>) {
    loop {
        // One that fails is begun again, from what is there then.
        drop(watched.watch(&admin, &seen).await);
        tokio::time::sleep(AGAIN).await;
    }
}

fn watched() -> Vec<Watched> {
    let resource = |group: &str, version: &str, kind: &str| {
        ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
    };
    let moved = MOVED.iter().flat_map(|(prefix, version, kind)| {
        [CapiTypes::Standard, CapiTypes::Private].map(|types| Watched {
            resource: resource(&format!("{prefix}{}", group::core(types)), version, kind),
            is_moved: true,
        })
    });
    let kept = KEPT.iter().map(|(group, version, kind)| Watched {
        resource: resource(group, version, kind),
        is_moved: false,
    });
    moved.chain(kept).collect()
}

// === impl Watched ===

impl Watched {
    async fn watch(&self, admin: &ApiClient, seen: &Mutex<BTreeSet<String>>) -> Result<()> {
        let api: Api<DynamicObject> = Api::all_with(admin.kube().clone(), &self.resource);
        let events = api.watch(&WatchParams::default(), "0").await?;
        pin_mut!(events);
        while let Some(event) = events.next().await {
            if let Some(deletion) = self.deletion(&event?) {
                seen.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(deletion);
            }
        }
        Ok(())
    }

    /// What is wrong with an event.
    fn deletion(&self, event: &WatchEvent<DynamicObject>) -> Option<String> {
        let (object, is_gone) = match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
            WatchEvent::Deleted(object) => (object, true),
            WatchEvent::Bookmark(_) | WatchEvent::Error(_) => return None,
        };
        let metadata = &object.metadata;
        let finalizers = metadata.finalizers.iter().flatten();
        let of_providers: Vec<_> = finalizers
            .filter(|it| !SERVERS_OWN.contains(&it.as_str()))
            .collect();
        let is_run = metadata.deletion_timestamp.is_some() && !of_providers.is_empty();
        let is_wrong = is_run || (is_gone && !self.is_moved);
        let name = metadata.name.as_deref().unwrap_or_default();
        if !is_wrong || name == poison::NAME {
            return None;
        }
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        let kind = &self.resource.kind;
        Some(format!("{kind} {namespace}/{name} with {of_providers:?}"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn deletions_that_providers_act_on_are_seen() {
        let object = |deleted: bool, finalizers: &[&str]| {
            let time = deleted.then_some("2030-01-31T12:00:00Z");
            let metadata = json!({ "name": "m", "namespace": "n", "deletionTimestamp": time, "finalizers": finalizers });
            serde_json::from_value::<DynamicObject>(json!({ "metadata": metadata })).unwrap()
        };
        let all = watched();
        let (moved, kept) = (all.first().unwrap(), all.last().unwrap());
        assert!(moved.is_moved && !kept.is_moved);
        for (event, of_moved, of_kept) in [
            (WatchEvent::Modified(object(false, &["a"])), false, false),
            (WatchEvent::Modified(object(true, &["a"])), true, true),
            (
                WatchEvent::Modified(object(true, &["orphan"])),
                false,
                false,
            ),
            (WatchEvent::Deleted(object(false, &[])), false, true),
        ] {
            assert_eq!(moved.deletion(&event).is_some(), of_moved, "{event:?}");
            assert_eq!(kept.deletion(&event).is_some(), of_kept, "{event:?}");
        }
    }
}
