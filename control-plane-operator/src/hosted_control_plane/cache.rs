//! A cache of the objects that a pass reads, updated by watches.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::hypershift::v1beta1::HostedControlPlane;
use control_plane_component::dependency::GROUP;
use control_plane_component::render::Identity;
use control_plane_component::settings::Settings;
use control_plane_component::write::{resource, value};
use control_plane_component::{Component, Objects};
use futures::StreamExt as _;
use futures::future::join_all;
use kube::Api;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::{WatchStreamExt as _, watcher};
use serde::Deserialize as _;
use serde_json::Value;
use support::error::chain;
use tokio::sync::watch;

/// API version and kind of objects that are rendered in code instead of manifests.
const RENDERED_IN_CODE: [(&str, &str); 5] = [
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    ("v1", "Service"),
    ("v1", "ServiceAccount"),
    ("route.openshift.io/v1", "Route"),
];
/// API version and kind of objects whose status is reported.
const REPORTED: [(&str, &str); 2] = [
    ("hypershift.openshift.io/v1beta1", "ControlPlaneComponent"),
    ("hypershift.openshift.io/v1beta1", HOSTED_CONTROL_PLANE),
];
const HOSTED_CONTROL_PLANE: &str = "HostedControlPlane";
/// Name of this operator's Deployment.
const OPERATOR: &str = "control-plane-operator";
/// Annotation: the HostedCluster that owns an object.
const CLUSTER: &str = "hypershift.openshift.io/cluster";

/// A watched kind.
struct Kind {
    resource: ApiResource,
    api: Api<DynamicObject>,
    /// Turns true when its initial list is complete, or when its group turns out to be served without it.
    synced: watch::Sender<bool>,
}

/// The cached objects. They are converted once, when they change, and shared with each pass.
#[derive(Default)]
struct State {
    /// All objects except HostedControlPlanes.
    objects: Objects,
    /// HostedControlPlanes by name.
    hosted_control_planes: BTreeMap<String, Arc<Value>>,
}

/// Returns API version and kind of all objects that these components write, which must be watched.
pub(crate) fn kinds(components: &[Component]) -> BTreeSet<(String, String)> {
    let fixed = RENDERED_IN_CODE.iter().chain(&REPORTED);
    let mut all: BTreeSet<_> = fixed
        .map(|(version, kind)| ((*version).to_owned(), (*kind).to_owned()))
        .collect();
    for component in components {
        let kinds = component.kinds();
        all.extend(kinds.expect("invariant: embedded manifests are parsed by a test"));
    }
    all
}

/// The objects that a pass reads.
pub(super) struct Cache {
    kinds: Vec<Kind>,
    state: Mutex<State>,
    /// Counts changes.
    changes: watch::Sender<u64>,
}

// === impl Cache ===

impl Cache {
    /// Creates an empty cache for the kinds of these components. Kinds that the management cluster does not serve are
    /// omitted.
    pub(super) fn new(
        client: &kube::Client,
        namespace: &str,
        settings: &Settings,
        components: &[Component],
    ) -> Self {
        let served = &settings.served_groups;
        let is_served = |group: &str| {
            let own = !group.contains('.') || group.ends_with(".k8s.io") || group == GROUP;
            own || served.iter().any(|served| served == group)
        };
        let resources = kinds(components)
            .into_iter()
            .map(|(version, kind)| (settings.monitoring.api_version(version), kind))
            .map(|(version, kind)| resource(&Identity::new(&version, &kind, "")))
            .filter(|resource| is_served(&resource.group));
        let kinds = resources.map(|resource| Kind {
            api: Api::namespaced_with(client.clone(), namespace, &resource),
            synced: watch::Sender::new(false),
            resource,
        });
        Self {
            kinds: kinds.collect(),
            state: Mutex::default(),
            changes: watch::Sender::new(0),
        }
    }

    /// Runs the watches.
    pub(super) async fn watch(&self) {
        join_all(self.kinds.iter().map(|kind| self.watch_kind(kind))).await;
    }

    async fn watch_kind(&self, kind: &Kind) {
        let events = watcher(kind.api.clone(), watcher::Config::default()).default_backoff();
        let mut events = std::pin::pin!(events);
        let mut listed = BTreeSet::new();
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => {
                    let is_complete = matches!(event, watcher::Event::InitDone);
                    self.state().handle(&kind.resource, event, &mut listed);
                    if is_complete {
                        kind.synced.send_replace(true);
                    }
                    self.changes.send_modify(|changes| *changes += 1);
                }
                Err(error) => {
                    if is_absent(&error) {
                        kind.synced.send_replace(true);
                    }
                    tracing::debug!(
                        kind = kind.resource.kind,
                        problem = chain(&error),
                        "Failed to watch"
                    );
                }
            }
        }
    }

    /// Completes when the initial lists of all served kinds are complete.
    pub(super) async fn wait_until_synced(&self) {
        for kind in &self.kinds {
            // It fails only when the sender is gone, which lives as long as this cache.
            let _ = kind.synced.subscribe().wait_for(|synced| *synced).await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic cannot leave a partial change behind: the lock is held for single changes of maps.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts changes, as long as this cache lives.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Returns all objects except the HostedControlPlane.
    pub(super) fn objects(&self) -> Objects {
        self.state().objects.clone()
    }

    /// Returns the HostedControlPlane of the namespace.
    ///
    /// Two clusters can have the same control plane namespace. The annotation of this operator's Deployment identifies
    /// the cluster.
    pub(super) fn hosted_control_plane(&self) -> Option<HostedControlPlane> {
        let object = {
            let state = self.state();
            let own = state.objects.get("apps", "Deployment", OPERATOR);
            let found = state.hosted_control_planes.values().cloned().collect();
            select(found, own.and_then(cluster_of))?
        };
        let read = HostedControlPlane::deserialize(&*object);
        read.inspect_err(|error| {
            tracing::error!(
                problem = chain(error),
                "Failed to parse the HostedControlPlane"
            );
        })
        .ok()
    }
}

// === impl State ===

impl State {
    /// Handles an event of a watch. `listed` are the names of a list until it is complete.
    fn handle(
        &mut self,
        resource: &ApiResource,
        event: watcher::Event<DynamicObject>,
        listed: &mut BTreeSet<String>,
    ) {
        match event {
            watcher::Event::Init => listed.clear(),
            watcher::Event::InitApply(object) => {
                listed.extend(object.metadata.name.clone());
                self.insert(resource, object);
            }
            watcher::Event::InitDone => {
                if resource.kind == HOSTED_CONTROL_PLANE {
                    self.hosted_control_planes
                        .retain(|name, _| listed.contains(name));
                } else {
                    self.objects.retain(&resource.group, &resource.kind, listed);
                }
                listed.clear();
            }
            watcher::Event::Apply(object) => self.insert(resource, object),
            watcher::Event::Delete(object) => {
                let name = object.metadata.name.unwrap_or_default();
                if resource.kind == HOSTED_CONTROL_PLANE {
                    self.hosted_control_planes.remove(&name);
                } else {
                    let identity = Identity::new(&resource.api_version, &resource.kind, &name);
                    self.objects.remove(&identity);
                }
            }
        }
    }

    fn insert(&mut self, resource: &ApiResource, mut object: DynamicObject) {
        // Dropped, because they are large and never read.
        object.metadata.managed_fields = None;
        let value = value(resource, &object);
        match object.metadata.name {
            Some(name) if resource.kind == HOSTED_CONTROL_PLANE => {
                self.hosted_control_planes.insert(name, Arc::new(value));
            }
            _ => self.objects.insert(value),
        }
    }
}

/// Returns the HostedCluster that owns an object, as `<namespace>/<name>`.
fn cluster_of(object: &Value) -> Option<&str> {
    object["metadata"]["annotations"][CLUSTER].as_str()
}

/// Selects the HostedControlPlane of the cluster. Without an exact match, the only one without an annotation; `None` if
/// it is ambiguous.
fn select(mut found: Vec<Arc<Value>>, cluster: Option<&str>) -> Option<Arc<Value>> {
    if let Some(cluster) = cluster {
        let exact = found.iter().find(|it| cluster_of(it) == Some(cluster));
        if let Some(exact) = exact {
            return Some(Arc::clone(exact));
        }
        found.retain(|it| cluster_of(it).is_none());
    }
    let only = found.pop()?;
    found.is_empty().then_some(only)
}

/// Whether the kind is not served. The watch is retried, because its CRD may be installed later.
fn is_absent(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::InitialListFailed(kube::Error::Api(status)) if status.code == 404)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::components;

    /// Check O06: a change of a kind that is not watched would not trigger a reconcile.
    #[test]
    fn all_written_kinds_are_watched() {
        let watched = kinds(components::all());
        for component in components::all() {
            for asset in component.assets() {
                let field = |name: &str| {
                    let value = asset.yaml.lines().find_map(|line| line.strip_prefix(name));
                    value.unwrap().to_owned()
                };
                let kind = (field("apiVersion: "), field("kind: "));
                assert!(watched.contains(&kind), "{}: {kind:?}", asset.file);
            }
        }
        for (version, kind) in [
            ("v1", "Secret"),
            ("apps/v1", "Deployment"),
            ("policy/v1", "PodDisruptionBudget"),
            ("route.openshift.io/v1", "Route"),
            ("monitoring.coreos.com/v1", "ServiceMonitor"),
            ("hypershift.openshift.io/v1beta1", "HostedControlPlane"),
        ] {
            let kind = (version.to_owned(), kind.to_owned());
            assert!(watched.contains(&kind), "{kind:?}");
        }
    }

    /// T01: two clusters may have the same control plane namespace, and only one of them owns it.
    #[test]
    fn control_planes_of_other_clusters_are_not_reconciled() {
        let hcp = |name: &str, cluster: Option<&str>| {
            let annotations = cluster.map(|cluster| serde_json::json!({ CLUSTER: cluster }));
            Arc::new(
                serde_json::json!({ "metadata": { "name": name, "annotations": annotations } }),
            )
        };
        let own = || hcp("a-b", Some("clusters/a-b"));
        let other = || hcp("b", Some("clusters-a/b"));
        let silent = || hcp("a-b", None);
        let cluster = Some("clusters/a-b");
        for (found, cluster, expected) in [
            (vec![own()], cluster, Some("a-b")),
            (vec![other(), own()], cluster, Some("a-b")),
            (vec![own(), silent()], cluster, Some("a-b")),
            (vec![other()], cluster, None),
            (vec![other(), silent()], cluster, Some("a-b")),
            (vec![own()], None, Some("a-b")),
            (vec![silent()], None, Some("a-b")),
            (vec![own(), other()], None, None),
            (vec![], cluster, None),
        ] {
            let chosen = select(found, cluster);
            let name = chosen
                .as_ref()
                .and_then(|it| it["metadata"]["name"].as_str());
            assert_eq!(name, expected);
        }
    }

    #[test]
    fn events_of_watches_are_followed() {
        use watcher::Event::{Apply, Delete, Init, InitApply, InitDone};
        let object = |name: &str, data: &str| {
            let object = serde_json::json!({
                "metadata": { "name": name, "managedFields": [{ "manager": "a" }] },
                "data": { "key": data },
            });
            serde_json::from_value::<DynamicObject>(object).unwrap()
        };
        for kind in ["ConfigMap", HOSTED_CONTROL_PLANE] {
            let version = if kind == "ConfigMap" {
                "v1"
            } else {
                REPORTED[1].0
            };
            let resource = resource(&Identity::new(version, kind, ""));
            let (mut state, mut listed) = (State::default(), BTreeSet::new());
            let found = |state: &State| -> Vec<String> {
                let all = state
                    .objects
                    .of_kind("", "ConfigMap")
                    .map(|(_, object)| object);
                let all = all.chain(state.hosted_control_planes.values().map(Arc::as_ref));
                all.inspect(|it| {
                    assert!(it["metadata"]["managedFields"].is_null() && it["kind"] == kind)
                })
                .map(|it| {
                    format!("{}={}", it["metadata"]["name"], it["data"]["key"]).replace('"', "")
                })
                .collect()
            };
            for (event, expected) in [
                (Init, vec![]),
                (InitApply(object("a", "1")), vec!["a=1"]),
                (InitApply(object("b", "1")), vec!["a=1", "b=1"]),
                (InitDone, vec!["a=1", "b=1"]),
                (Apply(object("a", "2")), vec!["a=2", "b=1"]),
                (Apply(object("c", "1")), vec!["a=2", "b=1", "c=1"]),
                (Delete(object("b", "1")), vec!["a=2", "c=1"]),
                // Objects that a new list lacks were deleted meanwhile; until it is complete, nothing is removed.
                (Init, vec!["a=2", "c=1"]),
                (InitApply(object("c", "3")), vec!["a=2", "c=3"]),
                (InitDone, vec!["c=3"]),
            ] {
                state.handle(&resource, event, &mut listed);
                assert_eq!(found(&state), expected, "{kind}");
            }
        }
    }

    #[test]
    fn only_unserved_kinds_are_not_waited_for() {
        let refused = |code: u16| {
            let status = kube::core::Status::failure("", "").with_code(code);
            watcher::Error::InitialListFailed(kube::Error::Api(Box::new(status)))
        };
        assert!(is_absent(&refused(404)));
        assert!(!is_absent(&refused(403)) && !is_absent(&refused(503)));
    }
}
