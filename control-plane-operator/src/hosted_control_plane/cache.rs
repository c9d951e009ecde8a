//! A cache of the objects that a pass reads, updated by watches.

use std::collections::BTreeSet;
use std::sync::Arc;

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
use kube::runtime::reflector::{self, Store};
use kube::runtime::{WatchStreamExt as _, watcher};
use support::error::chain;
use tokio::sync::Notify;

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

/// The cached objects of one kind.
struct Kind {
    resource: ApiResource,
    api: Api<DynamicObject>,
    store: Store<DynamicObject>,
    writer: std::sync::Mutex<Option<reflector::store::Writer<DynamicObject>>>,
    /// Notified when the group turns out to be served without this kind.
    absent: Notify,
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
    changed: Notify,
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
        let kinds = resources.map(|resource| {
            let writer = reflector::store::Writer::new(resource.clone());
            Kind {
                api: Api::namespaced_with(client.clone(), namespace, &resource),
                store: writer.as_reader(),
                writer: std::sync::Mutex::new(Some(writer)),
                absent: Notify::new(),
                resource,
            }
        });
        Self {
            kinds: kinds.collect(),
            changed: Notify::new(),
        }
    }

    /// Runs the watches.
    pub(super) async fn watch(&self) {
        join_all(self.kinds.iter().map(|kind| self.watch_kind(kind))).await;
    }

    async fn watch_kind(&self, kind: &Kind) {
        let writer = kind.writer.lock().ok().and_then(|mut writer| writer.take());
        let Some(writer) = writer else {
            return;
        };
        let events = watcher(kind.api.clone(), watcher::Config::default());
        // Dropped, because they are large and never read.
        let events = events.modify(|object| object.metadata.managed_fields = None);
        let events = reflector(writer, events).default_backoff();
        let mut events = std::pin::pin!(events);
        while let Some(event) = events.next().await {
            match event {
                Ok(_) => self.changed.notify_one(),
                Err(error) => {
                    if is_absent(&error) {
                        kind.absent.notify_one();
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
            tokio::select! {
                // It fails only when the watch has ended, which ends the term.
                _ = kind.store.wait_until_ready() => {}
                () = kind.absent.notified() => {}
            }
        }
    }

    /// Completes after the next change.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Returns all objects except the HostedControlPlane.
    pub(super) fn objects(&self) -> Objects {
        let kinds = self
            .kinds
            .iter()
            .filter(|kind| kind.resource.kind != HOSTED_CONTROL_PLANE);
        kinds
            .flat_map(|kind| {
                let objects = kind.store.state();
                objects
                    .into_iter()
                    .map(|object| value(&kind.resource, &object))
            })
            .collect()
    }

    fn kind(&self, name: &str) -> Option<&Kind> {
        self.kinds.iter().find(|kind| kind.resource.kind == name)
    }

    /// Returns the HostedControlPlane of the namespace.
    ///
    /// Two clusters can have the same control plane namespace. The annotation of this operator's Deployment identifies
    /// the cluster.
    pub(super) fn hosted_control_plane(&self) -> Option<HostedControlPlane> {
        let kind = self.kind(HOSTED_CONTROL_PLANE)?;
        let deployments = self.kind("Deployment").map(|kind| kind.store.state());
        let mut deployments = deployments.into_iter().flatten();
        let own = deployments.find(|it| it.metadata.name.as_deref() == Some(OPERATOR));
        let cluster = own.as_deref().and_then(cluster_of);
        let object = select(kind.store.state(), cluster)?;
        let read = serde_json::from_value(value(&kind.resource, &object));
        read.inspect_err(|error| {
            tracing::error!(
                problem = chain(error),
                "Failed to parse the HostedControlPlane"
            );
        })
        .ok()
    }
}

/// Returns the HostedCluster that owns an object, as `<namespace>/<name>`.
fn cluster_of(object: &DynamicObject) -> Option<&str> {
    let annotations = object.metadata.annotations.as_ref()?;
    annotations.get(CLUSTER).map(String::as_str)
}

/// Selects the HostedControlPlane of the cluster. Without an exact match, the only one without an annotation; `None` if
/// it is ambiguous.
fn select(mut found: Vec<Arc<DynamicObject>>, cluster: Option<&str>) -> Option<Arc<DynamicObject>> {
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

fn reflector<S>(
    writer: reflector::store::Writer<DynamicObject>,
    events: S,
) -> impl futures::Stream<Item = S::Item>
where
    S: futures::Stream<Item = Result<watcher::Event<DynamicObject>, watcher::Error>>,
{
    kube::runtime::reflector(writer, events)
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
            let object =
                serde_json::json!({ "metadata": { "name": name, "annotations": annotations } });
            Arc::new(serde_json::from_value::<DynamicObject>(object).unwrap())
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
            let name = chosen.and_then(|it| it.metadata.name.clone());
            assert_eq!(name.as_deref(), expected);
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
