//! What a reconcile of a cluster reads beside the objects that name the cluster: a change of it is noticed when the cluster
//! is reconciled the next time.

use api::hypershift::v1beta1::HostedCluster;

use crate::cache::{
    API_SERVER, CONFIG_MAPS, IGNITION_DEPLOYMENTS, IGNITION_PROXIES, IGNITION_ROUTES,
    IGNITION_SERVICES, Index, NAMESPACES, SECRETS, Snapshot,
};
use crate::cluster_ref::Id;
use crate::facts::references::{Kind, references};
use crate::names;

/// Name of the objects that serve nodes their configuration.
const IGNITION: &str = "ignition-server";
/// Name of the proxy in front of it.
const IGNITION_PROXY: &str = "ignition-server-proxy";

/// What is read of every cluster, and what its spec refers to; none while a watch does not know it.
pub(super) fn of_cluster(
    cluster: &HostedCluster,
    snapshot: Snapshot,
    index: &Index,
) -> Option<Snapshot> {
    let id = Id::of(&cluster.metadata);
    let (home, away) = (id.namespace.as_str(), &id.control_plane_namespace());
    let mut objects = vec![
        (API_SERVER, "default", "kubernetes"),
        (IGNITION_DEPLOYMENTS, away, IGNITION),
        (IGNITION_SERVICES, away, IGNITION),
        (IGNITION_PROXIES, away, IGNITION_PROXY),
        (IGNITION_ROUTES, away, IGNITION),
        (SECRETS, away, names::WEBHOOK_TLS),
    ];
    let references = references(cluster);
    for it in &references {
        let watch = match it.kind {
            Kind::Secret => SECRETS,
            Kind::ConfigMap => CONFIG_MAPS,
        };
        objects.push((watch, home, &it.name));
        if it.purpose.keeps_name() {
            // Another program may have an object where the copy goes.
            objects.push((watch, away, &it.name));
        }
    }
    if let Some(agent) = &cluster.spec.platform.agent {
        let namespace = agent.agent_namespace.as_str();
        objects.push((NAMESPACES, namespace, namespace));
    }
    index.also(snapshot, &objects)
}

/// Secrets that the control plane makes for administrators.
pub(super) fn of_control_plane(
    namespace: &str,
    secrets: &[String],
    snapshot: Snapshot,
    index: &Index,
) -> Option<Snapshot> {
    let objects = secrets.iter().map(|it| (SECRETS, namespace, it.as_str()));
    index.also(snapshot, &objects.collect::<Vec<_>>())
}
