//! What a cluster has in its control plane namespace, as etcd holds it.
//!
//! Its own controllers continue, so not all of it can be compared byte for byte. Compared are:
//!
//! - the bytes and the revision of what the test has created there, and of kinds that have no status: ConfigMaps,
//!   Secrets, service accounts, RBAC, NetworkPolicies and the namespace itself;
//! - metadata and specification of Cluster API objects, of the HostedControlPlane and of its components, whose status
//!   their controllers write;
//! - the identities of pods, Machines and nodes.
//!
//! Excluded are Events, Leases, endpoints, Jobs and the status of workloads, which change by themselves.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::audit::Mark;
use testbed::etcd::Stored;
use testbed::hosted::{Cluster, Guest};
use testbed::wait;

use crate::side_by_side::neighbour::Neighbour;

/// How long nothing may have changed.
const REST: Duration = Duration::from_secs(10);
/// How long it may take until then: Cluster API writes to the status of what is paused, too.
const AT_REST_WITHIN: Duration = Duration::from_mins(3);
/// The operator of the private types, which has nothing to write in the namespace of a cluster on standard ones.
const OPERATOR: &str = "system:serviceaccount:hypershift:operator";
/// Kinds without status, as keys begin.
const WITHOUT_STATUS: [&str; 9] = [
    "clusterrolebindings/",
    "clusterroles/",
    "configmaps/",
    "namespaces/",
    "networkpolicies/",
    "rolebindings/",
    "roles/",
    "secrets/",
    "serviceaccounts/",
];
/// Groups whose objects are stored as JSON.
const JSON_GROUPS: [&str; 3] = [
    "cluster.x-k8s.io/",
    "infrastructure.cluster.x-k8s.io/",
    "hypershift.openshift.io/",
];
/// The finalizers of what the test has created begin so.
const PLANTED: &str = "example.com/";

/// It, and what it was read from.
pub(crate) struct Owned<'a> {
    cluster: &'a Cluster<'a>,
    guest: &'a Guest,
    neighbour: Neighbour,
    objects: Objects,
    mark: Mark,
}

/// What is compared of each object, by key.
#[derive(Debug, PartialEq)]
struct Objects(BTreeMap<String, Compared>);

/// What is compared of an object.
#[derive(Debug, PartialEq)]
enum Compared {
    Bytes(Vec<u8>, u64),
    Specification(Value),
}

// === impl Owned ===

impl<'a> Owned<'a> {
    /// Waits until nothing changes any more.
    pub(crate) async fn at_rest(cluster: &'a Cluster<'a>, guest: &'a Guest) -> Result<Self> {
        let mark = cluster.fixture().testbed.control_plane.audit.mark()?;
        wait::until(
            "the owner's objects to be at rest",
            AT_REST_WITHIN,
            async || {
                let owned = Self {
                    cluster,
                    guest,
                    neighbour: Neighbour::of(cluster, guest).await?,
                    objects: Objects::read(cluster).await?,
                    mark,
                };
                wait::throughout("rest", REST, async || owned.are_unchanged().await).await?;
                Ok(owned)
            },
        )
        .await
    }

    /// How many objects are compared.
    pub(crate) fn count(&self) -> usize {
        self.objects.0.len()
    }

    /// Fails if any of them is another one, gone or new, or if the operator of the private types wrote there.
    pub(crate) async fn are_unchanged(&self) -> Result<()> {
        self.objects.are(&Objects::read(self.cluster).await?)?;
        let testbed = &self.cluster.fixture().testbed;
        let namespace = self.cluster.namespace();
        for event in testbed.control_plane.audit.since(self.mark)? {
            let is_foreign = event.user.username == OPERATOR && event.uri.contains(&namespace);
            ensure!(!is_foreign || !event.is_write(), "{}", event.summary());
        }
        Ok(())
    }

    /// Fails if a pod, a Machine or a node was replaced.
    pub(crate) async fn runs(&self) -> Result<()> {
        self.neighbour.is_untouched(self.cluster, self.guest).await
    }
}

// === impl Objects ===

impl Objects {
    async fn read(cluster: &Cluster<'_>) -> Result<Self> {
        let etcd = &cluster.fixture().testbed.control_plane.etcd;
        let namespace = cluster.namespace();
        let all = etcd.stored("/registry/").await?.into_iter();
        let own = all.filter(|it| it.key.contains(&namespace));
        let compared = own.filter_map(|it| Some((it.key.clone(), compared(it)?)));
        Ok(Self(compared.collect()))
    }

    fn are(&self, now: &Self) -> Result<()> {
        for (key, before) in &self.0 {
            let now = now.0.get(key).with_context(|| format!("{key} is gone"))?;
            ensure!(
                before == now,
                "{key} was changed: {}",
                difference(before, now)
            );
        }
        let new = now.0.keys().find(|key| !self.0.contains_key(*key));
        ensure!(new.is_none(), "{new:?} is new");
        Ok(())
    }
}

fn compared(stored: Stored) -> Option<Compared> {
    let key = stored.key.strip_prefix("/registry/")?;
    if WITHOUT_STATUS.iter().any(|kind| key.starts_with(kind)) {
        return Some(Compared::Bytes(stored.value, stored.revision));
    }
    if !JSON_GROUPS.iter().any(|group| key.starts_with(group)) {
        return None;
    }
    let object: Value = serde_json::from_slice(&stored.value).ok()?;
    let finalizers = object["metadata"]["finalizers"].as_array();
    let mut finalizers = finalizers.into_iter().flatten().filter_map(Value::as_str);
    if finalizers.any(|finalizer| finalizer.starts_with(PLANTED)) {
        return Some(Compared::Bytes(stored.value, stored.revision));
    }
    Some(Compared::Specification(specification(object)))
}

/// An object without its status, and without the times of writes to it.
fn specification(mut object: Value) -> Value {
    let mut metadata = object["metadata"].take();
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.remove("managedFields");
    }
    json!({ "metadata": metadata, "spec": object["spec"].take() })
}

/// Both, where they are no Secrets.
fn difference(before: &Compared, now: &Compared) -> String {
    match (before, now) {
        (Compared::Specification(before), Compared::Specification(now)) => {
            format!("{before} -> {now}")
        }
        (Compared::Bytes(_, before), Compared::Bytes(_, now)) => {
            format!("revision {before} -> {now}")
        }
        _ => "it is compared in another way".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(key: &str, value: &str) -> Stored {
        Stored {
            key: format!("/registry/{key}"),
            value: value.as_bytes().to_vec(),
            revision: 1,
        }
    }

    #[test]
    fn planted_objects_are_compared_by_their_bytes() {
        let planted = r#"{"metadata":{"finalizers":["example.com/machines"]}}"#;
        let own = r#"{"metadata":{"managedFields":[],"uid":"1"},"spec":{"a":1},"status":{"b":2}}"#;
        let found = |key: &str, value: &str| compared(stored(key, value));
        let key = "cluster.x-k8s.io/machines/n/m";
        assert!(matches!(found(key, planted), Some(Compared::Bytes(_, 1))));
        let expected = json!({ "metadata": { "uid": "1" }, "spec": { "a": 1 } });
        assert_eq!(found(key, own), Some(Compared::Specification(expected)));
        assert!(matches!(
            found("secrets/n/s", "k8s"),
            Some(Compared::Bytes(..))
        ));
        assert_eq!(found("events/n/e", "k8s"), None);
        assert_eq!(found("leases/n/l", "k8s"), None);
    }

    #[test]
    fn changed_missing_and_new_objects_are_reported() {
        let of = |objects: &[(&str, u64)]| {
            let all = objects
                .iter()
                .map(|(key, revision)| ((*key).to_owned(), Compared::Bytes(Vec::new(), *revision)));
            Objects(all.collect())
        };
        let before = of(&[("a", 1), ("b", 1)]);
        before.are(&of(&[("a", 1), ("b", 1)])).unwrap();
        for now in [
            &[("a", 1)][..],
            &[("a", 1), ("b", 2)],
            &[("a", 1), ("b", 1), ("c", 1)],
        ] {
            assert!(before.are(&of(now)).is_err(), "{now:?}");
        }
    }
}
