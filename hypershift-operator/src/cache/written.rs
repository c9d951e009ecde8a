//! Objects that were applied, each with its version after that: while its watch has this version, another apply would not
//! change it.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ApiResource;
use serde_json::{Value, json};
use support::apply::{Desired, Known, Memory, Part};

use super::Cache;
use super::index::{Found, Index, LABELLED, Snapshot};

/// The objects. Only hashes are kept, no contents of Secrets.
#[derive(Debug, Default)]
pub(super) struct Written(Mutex<Objects>);

#[derive(Debug, Default)]
struct Objects {
    versions: HashMap<u64, Version>,
    /// Objects that are not desired, and were read as absent.
    absent: HashSet<u64>,
    /// When there are more, deleted ones are forgotten.
    limit: usize,
}

#[derive(Debug, Clone, Copy)]
struct Version {
    /// Of what was applied.
    desired: u64,
    /// Of the object that the apply was compared with.
    before: u64,
    /// Of the object since then.
    found: u64,
}

/// Fewer objects than this are never checked for deleted ones.
const FEW: usize = 1024;
/// When more objects are known to be absent, they are forgotten: those of deleted clusters are never asked for again.
const ABSENT: usize = 1 << 16;

// === impl Cache ===

impl Memory for Cache {
    fn known(&self, desired: Desired<'_>) -> Known {
        let text = |field: &str| {
            desired.object["metadata"][field]
                .as_str()
                .unwrap_or_default()
        };
        let (namespace, name) = (text("namespace"), text("name"));
        let namespace = match desired.resource.kind.as_str() {
            // Namespaces are indexed as if they were in themselves.
            "Namespace" => name,
            _ => namespace,
        };
        let watch = watch(desired.resource);
        let Some(found) = self.index.version_in(&watch, namespace, name) else {
            return Known::Nothing;
        };
        let written = self.written.get(&self.index, desired);
        match (found.0, written) {
            (Some(found), Some(written)) if found == written.found => {
                if written.desired == self.index.hash(desired.object) {
                    return Known::Settled;
                }
                Known::Nothing
            }
            (None, None) => Known::Absent,
            (_, _) => Known::Nothing,
        }
    }

    fn applied(&self, desired: Desired<'_>, previous: Option<&str>, found: &ObjectMeta) {
        let mut found = found.clone();
        if desired.resource.kind == "Namespace" {
            found.namespace.clone_from(&found.name);
        }
        let before = ObjectMeta {
            resource_version: previous.map(str::to_owned),
            ..found.clone()
        };
        let version = Version {
            desired: self.index.hash(desired.object),
            before: self.index.version_of(&before),
            found: self.index.version_of(&found),
        };
        self.written.put(&self.index, desired, version);
    }

    fn is_absent(&self, resource: &ApiResource, namespace: &str, name: &str) -> bool {
        let found = self.index.version_in(&watch(resource), namespace, name);
        // An object of an earlier version of the operator has no label, and so is not watched: it has to be read once.
        let key = absent_key(&self.index, resource, namespace, name);
        found == Some(Found(None)) && self.written.lock().absent.contains(&key)
    }

    fn absent(&self, resource: &ApiResource, namespace: &str, name: &str) {
        let key = absent_key(&self.index, resource, namespace, name);
        let mut objects = self.written.lock();
        if objects.absent.len() >= ABSENT {
            objects.absent.clear();
        }
        objects.absent.insert(key);
    }
}

impl Cache {
    /// The snapshot with the object of the reconcile in the version that the update of its status has returned: its own
    /// status is no change. None if there was another write since the object was read.
    pub(crate) fn after_own_status(
        &self,
        snapshot: Snapshot,
        (watch, resource): (&'static str, &ApiResource),
        manager: &str,
        read: &ObjectMeta,
    ) -> Option<Snapshot> {
        let namespace = read.namespace.as_deref().unwrap_or_default();
        let name = read.name.as_deref().unwrap_or_default();
        let status = Desired {
            resource,
            object: &json!({ "metadata": { "namespace": namespace, "name": name } }),
            part: Part::Status,
            manager,
        };
        let version = self.with_own_status(status, read)?;
        Some(
            self.index
                .with_version(snapshot, (watch, namespace, name), version),
        )
    }

    /// The version of an object of which this version was read, with the status that was applied since, if one was. None
    /// if another write came between.
    fn with_own_status(&self, status: Desired<'_>, read: &ObjectMeta) -> Option<u64> {
        let read = self.index.version_of(read);
        match self.written.get(&self.index, status) {
            None => Some(read),
            Some(written) if read == written.before => Some(written.found),
            Some(written) => (read == written.found).then_some(read),
        }
    }
}

// === impl Written ===

impl Written {
    fn lock(&self) -> MutexGuard<'_, Objects> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, index: &Index, desired: Desired<'_>) -> Option<Version> {
        let objects = self.lock();
        objects.versions.get(&key(index, desired)).copied()
    }

    fn put(&self, index: &Index, desired: Desired<'_>, version: Version) {
        let mut objects = self.lock();
        objects.versions.insert(key(index, desired), version);
        if objects.versions.len() > objects.limit.max(FEW) {
            let known: HashSet<u64> = index.versions();
            objects.versions.retain(|_, it| known.contains(&it.found));
            objects.versions.insert(key(index, desired), version);
            objects.limit = objects.versions.len() * 2;
        }
    }
}

fn key(index: &Index, desired: Desired<'_>) -> u64 {
    let Desired {
        resource,
        object,
        part,
        manager,
    } = desired;
    let name = |field: &str| match &object["metadata"][field] {
        Value::String(name) => name.clone(),
        _ => String::new(),
    };
    let kind = (&resource.api_version, &resource.kind);
    index.hash(&(kind, name("namespace"), name("name"), part, manager))
}

fn absent_key(index: &Index, resource: &ApiResource, namespace: &str, name: &str) -> u64 {
    index.hash(&(&resource.api_version, &resource.kind, namespace, name))
}

/// The watch that has the objects of a kind which this operator writes.
fn watch(resource: &ApiResource) -> String {
    let plural = &resource.plural;
    let labelled = format!("{plural}, labelled");
    if LABELLED.contains(&labelled.as_str()) {
        return labelled;
    }
    match resource.group.as_str() {
        "" | "hypershift.openshift.io" => plural.clone(),
        group => format!("{plural}.{group}"),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Secret;
    use kube::api::DynamicObject;
    use kube::runtime::watcher::Event;
    use serde_json::json;

    use super::*;
    use crate::cache::SECRETS;

    fn found(version: &str) -> DynamicObject {
        let metadata = json!({
            "namespace": "a", "name": "b", "uid": "u", "resourceVersion": version,
        });
        serde_json::from_value(json!({ "metadata": metadata })).unwrap()
    }

    #[test]
    fn what_was_applied_is_known_until_it_changes() {
        let cache = Cache::new();
        let resource = ApiResource::erase::<Secret>(&());
        let object =
            |data: &str| json!({ "metadata": { "namespace": "a", "name": "b" }, "data": data });
        let (one, two) = (object("1"), object("2"));
        let desired = |object| Desired {
            resource: &resource,
            object,
            part: Part::Main,
            manager: "m",
        };
        assert_eq!(
            cache.known(desired(&one)),
            Known::Nothing,
            "nothing is listed"
        );
        cache.sync(&[]);
        assert_eq!(cache.known(desired(&one)), Known::Absent);
        cache.applied(desired(&one), None, &found("1").metadata);
        assert_eq!(
            cache.known(desired(&one)),
            Known::Nothing,
            "the watch is late"
        );
        cache.see(SECRETS, &Ok(Event::Apply(found("1"))));
        assert_eq!(cache.known(desired(&one)), Known::Settled);
        assert_eq!(cache.known(desired(&two)), Known::Nothing);
        let other = Desired {
            manager: "other",
            ..desired(&one)
        };
        assert_eq!(cache.known(other), Known::Nothing);
        cache.see(SECRETS, &Ok(Event::Apply(found("2"))));
        assert_eq!(cache.known(desired(&one)), Known::Nothing, "it was changed");
        cache.applied(desired(&one), Some("1"), &found("2").metadata);
        for (read, expected) in [("1", true), ("2", true), ("0", false), ("3", false)] {
            let version = cache.with_own_status(desired(&one), &found(read).metadata);
            assert_eq!(version.is_some(), expected, "{read}");
        }
    }

    #[test]
    fn absent_objects_are_read_once() {
        let cache = Cache::new();
        let resource = ApiResource::erase::<Secret>(&());
        let is_absent = || cache.is_absent(&resource, "a", "b");
        cache.absent(&resource, "a", "b");
        assert!(!is_absent(), "nothing is listed");
        cache.sync(&[]);
        assert!(is_absent());
        assert!(!cache.is_absent(&resource, "a", "c"), "it was not read");
        cache.see(SECRETS, &Ok(Event::Apply(found("1"))));
        assert!(!is_absent(), "it is watched");
    }

    #[test]
    fn every_kind_that_is_written_is_watched() {
        use crate::cache::index::ALL;
        use k8s_openapi::api::apps::v1::Deployment;
        use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
        use k8s_openapi::api::networking::v1::NetworkPolicy;
        use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};

        for resource in [
            ApiResource::erase::<ClusterRole>(&()),
            ApiResource::erase::<ClusterRoleBinding>(&()),
            ApiResource::erase::<ConfigMap>(&()),
            ApiResource::erase::<Deployment>(&()),
            ApiResource::erase::<api::hypershift::v1beta1::HostedControlPlane>(&()),
            ApiResource::erase::<Namespace>(&()),
            ApiResource::erase::<NetworkPolicy>(&()),
            ApiResource::erase::<Role>(&()),
            ApiResource::erase::<RoleBinding>(&()),
            ApiResource::erase::<Secret>(&()),
            ApiResource::erase::<ServiceAccount>(&()),
            crate::cluster_ref::resource(),
        ] {
            let watch = watch(&resource);
            assert!(ALL.contains(&watch.as_str()), "{watch}");
        }
    }
}
