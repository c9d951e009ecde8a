//! All that the pipeline looks at, kept up to date by watches.

use std::sync::Arc;

use api::hypershift::v1beta1::HostedControlPlane;
use control_plane_component::Objects;
use control_plane_component::write::value;
use futures::StreamExt as _;
use futures::future::join_all;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::reflector::{self, Store};
use kube::runtime::{WatchStreamExt as _, watcher};
use support::error::chain;
use tokio::sync::Notify;

/// Kinds that are watched: group, version, kind.
const KINDS: [(&str, &str, &str); 17] = [
    ("", "v1", "ConfigMap"),
    ("", "v1", "Secret"),
    ("", "v1", "Service"),
    ("", "v1", "ServiceAccount"),
    ("apps", "v1", "Deployment"),
    ("apps", "v1", "StatefulSet"),
    ("batch", "v1", "CronJob"),
    ("batch", "v1", "Job"),
    ("policy", "v1", "PodDisruptionBudget"),
    ("rbac.authorization.k8s.io", "v1", "Role"),
    ("rbac.authorization.k8s.io", "v1", "RoleBinding"),
    (
        "hypershift.openshift.io",
        "v1beta1",
        "ControlPlaneComponent",
    ),
    HOSTED_CONTROL_PLANE,
    ROUTE,
    ("monitoring.coreos.com", "v1", "PodMonitor"),
    ("monitoring.coreos.com", "v1", "PrometheusRule"),
    ("monitoring.coreos.com", "v1", "ServiceMonitor"),
];
const HOSTED_CONTROL_PLANE: (&str, &str, &str) =
    ("hypershift.openshift.io", "v1beta1", "HostedControlPlane");
/// The name of this operator's own Deployment.
const OPERATOR: &str = "control-plane-operator";
/// Annotation: the hosted cluster that an object is made for.
const CLUSTER: &str = "hypershift.openshift.io/cluster";
const ROUTE: (&str, &str, &str) = ("route.openshift.io", "v1", "Route");

/// One kind's objects.
struct Kind {
    resource: ApiResource,
    api: Api<DynamicObject>,
    store: Store<DynamicObject>,
    writer: std::sync::Mutex<Option<reflector::store::Writer<DynamicObject>>>,
    /// Somebody has found out that the group is served without this kind.
    absent: Notify,
}

/// All that the pipeline looks at.
pub(super) struct Cache {
    kinds: Vec<Kind>,
    changed: Notify,
}

// === impl Cache ===

impl Cache {
    /// An empty one. Kinds that the management cluster does not serve are left out.
    pub(super) fn new(client: &kube::Client, namespace: &str, served: &[String]) -> Self {
        let is_served = |group: &str| {
            let own = !group.contains('.') || group.ends_with(".k8s.io");
            own || group == HOSTED_CONTROL_PLANE.0 || served.iter().any(|served| served == group)
        };
        let kinds = KINDS.iter().filter(|(group, _, _)| is_served(group));
        let kinds = kinds.map(|(group, version, kind)| {
            let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
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

    /// Keeps it up to date, for ever.
    pub(super) async fn watch(&self) {
        join_all(self.kinds.iter().map(|kind| self.watch_kind(kind))).await;
    }

    async fn watch_kind(&self, kind: &Kind) {
        let writer = kind.writer.lock().ok().and_then(|mut writer| writer.take());
        let Some(writer) = writer else {
            return;
        };
        let events = watcher(kind.api.clone(), watcher::Config::default());
        // What nobody reads is not kept.
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
                        "Cannot watch"
                    );
                }
            }
        }
    }

    /// Completes when everything that is served has been listed once.
    pub(super) async fn filled(&self) {
        for kind in &self.kinds {
            tokio::select! {
                // It fails only when the watch has ended, and then so does this term.
                _ = kind.store.wait_until_ready() => {}
                () = kind.absent.notified() => {}
            }
        }
    }

    /// Completes when something has changed since it last did.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// All objects, but the hosted control plane.
    pub(super) fn objects(&self) -> Objects {
        let kinds = self
            .kinds
            .iter()
            .filter(|kind| kind.resource.kind != HOSTED_CONTROL_PLANE.2);
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

    /// The hosted control plane: the one of the namespace. What cannot be read as one is told by the API server.
    ///
    /// The name of a namespace does not say which cluster it belongs to, so that objects of two may be in it. This
    /// operator's own Deployment names the one that it was made for.
    pub(super) fn hosted_control_plane(&self) -> Option<HostedControlPlane> {
        let kind = self.kind(HOSTED_CONTROL_PLANE.2)?;
        let deployments = self.kind("Deployment").map(|kind| kind.store.state());
        let mut deployments = deployments.into_iter().flatten();
        let own = deployments.find(|it| it.metadata.name.as_deref() == Some(OPERATOR));
        let cluster = own.as_deref().and_then(cluster_of);
        let object = choose(kind.store.state(), cluster)?;
        let read = serde_json::from_value(value(&kind.resource, &object));
        read.inspect_err(|error| {
            tracing::error!(
                problem = chain(error),
                "The HostedControlPlane has a form that this version does not know"
            );
        })
        .ok()
    }
}

/// The hosted cluster that an object is made for, as `<namespace>/<name>`.
fn cluster_of(object: &DynamicObject) -> Option<&str> {
    let annotations = object.metadata.annotations.as_ref()?;
    annotations.get(CLUSTER).map(String::as_str)
}

/// The one that is made for the cluster. If none says so, the only one that says nothing else; nothing if it is not clear.
fn choose(mut found: Vec<Arc<DynamicObject>>, cluster: Option<&str>) -> Option<Arc<DynamicObject>> {
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

/// Whether the API server knows no such kind. Its definition may be installed later: the watch goes on trying.
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
    use std::path::Path;

    use super::*;

    /// Every kind that a component's manifests have is watched: else its drift would wake nobody.
    #[test]
    fn o06_every_kind_that_is_written_is_watched() {
        let assets = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets");
        for component in crate::components::all() {
            for asset in component.assets() {
                let path = assets.join(component.name).join(asset.file);
                let text = std::fs::read_to_string(path).unwrap();
                let kind = text.lines().find_map(|line| line.strip_prefix("kind: "));
                let kind = kind.unwrap();
                assert!(
                    KINDS.iter().any(|(_, _, watched)| *watched == kind),
                    "{}/{}: {kind}",
                    component.name,
                    asset.file
                );
            }
        }
    }

    /// T01: two clusters may have the same control plane namespace, and only one of them owns it.
    #[test]
    fn a_hosted_control_plane_of_another_cluster_is_not_reconciled() {
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
            let chosen = choose(found, cluster);
            let name = chosen.and_then(|it| it.metadata.name.clone());
            assert_eq!(name.as_deref(), expected);
        }
    }

    #[test]
    fn only_a_kind_that_is_not_there_is_not_waited_for() {
        let refused = |code: u16| {
            let status = kube::core::Status::failure("", "").with_code(code);
            watcher::Error::InitialListFailed(kube::Error::Api(Box::new(status)))
        };
        assert!(is_absent(&refused(404)));
        assert!(!is_absent(&refused(403)) && !is_absent(&refused(503)));
    }
}
