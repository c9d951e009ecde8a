//! What was written when: the order of an API server's writes, by their resource versions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use control_plane_component::Component;
use control_plane_operator::components;
use futures::{StreamExt as _, pin_mut};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, WatchEvent, WatchParams};
use serde_json::{Value, json};
use testbed::client::ApiClient;
use testbed::conditions;
use testbed::payload::Release;
use tokio::task::JoinHandle;

/// Before a watch that has ended is resumed.
const AGAIN: Duration = Duration::from_millis(100);
/// What a watch begins with: all that there is.
const BEGIN: &str = "0";
/// Status: events since the last one are no longer available.
const GONE: u16 = 410;
/// Annotation of pods: the image of their release.
const RELEASE: &str = "hypershift.openshift.io/release-image";
const COMPONENT: &str = "ControlPlaneComponent";
/// Group, version and kind of what is watched.
const KINDS: [[&str; 3]; 5] = [
    ["hypershift.openshift.io", "v1beta1", COMPONENT],
    ["apps", "v1", "Deployment"],
    ["apps", "v1", "StatefulSet"],
    ["batch", "v1", "CronJob"],
    ["batch", "v1", "Job"],
];
/// The dependency that nearly all components have without declaring it.
const IMPLIED: &str = "kube-apiserver";
/// Those that do not have it.
const INDEPENDENT: [&str; 6] = [
    "etcd",
    "featuregate-generator",
    "ignition-server",
    "ignition-server-proxy",
    "kube-apiserver",
    "router",
];

/// Components and their workloads, as they were written.
#[derive(Debug)]
pub(crate) struct History {
    seen: Arc<Mutex<Seen>>,
    watches: Vec<JoinHandle<()>>,
}

/// The first write of each state, as a resource version.
#[derive(Debug, Default)]
struct Seen {
    /// Component and version: all of its pods have it.
    complete: BTreeMap<(String, String), u64>,
    /// Workload and release image: its pods are to have it.
    requested: BTreeMap<(String, String), u64>,
    /// Kinds of which events were missed.
    incomplete: BTreeSet<&'static str>,
}

// === impl History ===

impl History {
    /// Begins, before there is anything in the namespace.
    pub(crate) fn start(admin: &ApiClient, namespace: &str) -> Self {
        let seen = Arc::<Mutex<Seen>>::default();
        let watches = KINDS.map(|[group, version, kind]| {
            let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
            let client = admin.kube().clone();
            let api = Api::namespaced_with(client, namespace, &resource);
            tokio::spawn(watch(api, kind, Arc::clone(&seen)))
        });
        Self {
            seen,
            watches: watches.into(),
        }
    }

    /// No workload of these components was requested with a release before all that its component depends on had it.
    /// Events may come late.
    pub(crate) fn is_in_order(&self, release: &Release, expected: &[&str]) -> Result<()> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let missed = &seen.incomplete;
        ensure!(missed.is_empty(), "events of {missed:?} were missed");
        let mut compared = 0;
        for name in expected {
            let requested = seen.requested(name, release)?;
            for dependency in dependencies(component(name)?) {
                let complete = seen.complete(dependency, release)?;
                ensure!(
                    complete < requested,
                    "{name} was requested at {requested}, and {dependency} was complete at {complete}"
                );
                compared += 1;
            }
        }
        ensure!(compared > 30, "only {compared} dependencies were compared");
        Ok(())
    }
}

impl Drop for History {
    fn drop(&mut self) {
        for watch in &self.watches {
            watch.abort();
        }
    }
}

fn component(name: &str) -> Result<&'static Component> {
    let mut declared = components::all().iter();
    let found = declared.find(|it| it.name == name);
    found.with_context(|| format!("no component is called {name}"))
}

/// The declared dependencies with workloads, and the implied one.
fn dependencies(component: &Component) -> Vec<&'static str> {
    let mut all = component.dependencies().to_vec();
    if !INDEPENDENT.contains(&component.name) && !all.contains(&IMPLIED) {
        all.push(IMPLIED);
    }
    let has_workload = |name: &str| {
        let mut declared = components::all().iter();
        declared.any(|it| it.name == name && it.has_workload())
    };
    all.retain(|name| has_workload(name));
    all
}

async fn watch(api: Api<DynamicObject>, kind: &'static str, seen: Arc<Mutex<Seen>>) {
    let mut version = BEGIN.to_owned();
    loop {
        // A watch ends after some minutes, or with its connection. It is resumed where it ended, because an object has only
        // its last state.
        if let Err(error) = follow(&api, kind, &seen, &mut version).await
            && is_gone(&error)
        {
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.incomplete.insert(kind);
            BEGIN.clone_into(&mut version);
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// Follows the events after a version, which is that of the last one then.
async fn follow(
    api: &Api<DynamicObject>,
    kind: &str,
    seen: &Mutex<Seen>,
    version: &mut String,
) -> kube::Result<()> {
    let events = api.watch(&WatchParams::default(), version).await?;
    pin_mut!(events);
    while let Some(event) = events.next().await {
        let object = match event? {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                seen.add(kind, &json!(object));
                object
            }
            WatchEvent::Deleted(object) => object,
            WatchEvent::Bookmark(bookmark) => {
                version.clone_from(&bookmark.metadata.resource_version);
                continue;
            }
            WatchEvent::Error(status) => return Err(kube::Error::Api(status)),
        };
        if let Some(last) = object.metadata.resource_version {
            *version = last;
        }
    }
    Ok(())
}

fn is_gone(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == GONE)
}

// === impl Seen ===

impl Seen {
    /// When a workload was first requested with a release.
    fn requested(&self, name: &str, release: &Release) -> Result<u64> {
        let key = (name.to_owned(), release.image.clone());
        let found = self.requested.get(&key).copied();
        found.with_context(|| format!("{name} was never requested with {}", release.version))
    }

    /// When a component was first complete with a release.
    fn complete(&self, name: &str, release: &Release) -> Result<u64> {
        let key = (name.to_owned(), release.version.clone());
        let found = self.complete.get(&key).copied();
        found.with_context(|| format!("{name} was never complete with {}", release.version))
    }

    fn add(&mut self, kind: &str, object: &Value) -> Option<()> {
        let metadata = &object["metadata"];
        let name = metadata["name"].as_str()?.to_owned();
        let written = metadata["resourceVersion"].as_str()?.parse().ok()?;
        if kind == COMPONENT {
            let is = |kind| conditions::find(object, kind).is_some_and(|it| it["status"] == "True");
            let version = object["status"]["version"].as_str()?.to_owned();
            if is("Available") && is("RolloutComplete") {
                self.complete.entry((name, version)).or_insert(written);
            }
            return Some(());
        }
        let path = match kind {
            "CronJob" => "/spec/jobTemplate/spec/template/metadata/annotations",
            _ => "/spec/template/metadata/annotations",
        };
        let image = object.pointer(path)?[RELEASE].as_str()?.to_owned();
        self.requested.entry((name, image)).or_insert(written);
        Some(())
    }
}
