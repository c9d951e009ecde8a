//! All objects of the namespaces that a migration concerns, of every kind, at one time.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::object::{Object, ObjectKey, Resource};

/// What was read. The executor records responses in it, so that nothing is listed again after each write.
///
/// Of kinds outside of the groups that are moved metadata is enough; of Secrets and ConfigMaps nothing else belongs
/// here.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    objects: BTreeMap<ObjectKey, Object>,
    by_uid: HashMap<String, ObjectKey>,
    resources: BTreeMap<(String, String), Arc<Resource>>,
    unlisted: BTreeSet<String>,
}

// === impl Snapshot ===

impl Snapshot {
    /// Nothing read yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes that all objects of a kind are in here: what is not, is not there.
    pub fn listed(&mut self, resource: Resource) {
        let key = (resource.group.clone(), resource.kind.clone());
        self.resources.insert(key, Arc::new(resource));
    }

    /// Notes that a kind could not be read: who knows what is there.
    pub fn unlisted(&mut self, resource: impl Into<String>) {
        self.unlisted.insert(resource.into());
    }

    /// The kinds that could not be read.
    pub fn unread(&self) -> impl Iterator<Item = &str> {
        self.unlisted.iter().map(String::as_str)
    }

    /// Adds or replaces an object.
    pub fn put(&mut self, object: Object) {
        let uid = object.uid().to_owned();
        let key = object.key().clone();
        if let Some(before) = self.objects.insert(key.clone(), object) {
            self.by_uid.remove(before.uid());
        }
        self.by_uid.insert(uid, key);
    }

    /// Takes out an object that is gone.
    pub fn remove(&mut self, key: &ObjectKey) {
        if let Some(before) = self.objects.remove(key) {
            self.by_uid.remove(before.uid());
        }
    }

    /// One object.
    pub fn get(&self, key: &ObjectKey) -> Option<&Object> {
        self.objects.get(key)
    }

    /// The object with this UID.
    pub fn by_uid(&self, uid: &str) -> Option<&Object> {
        self.objects.get(self.by_uid.get(uid)?)
    }

    /// All objects, by key.
    pub fn objects(&self) -> impl Iterator<Item = &Object> {
        self.objects.values()
    }

    /// How a kind is served; none when it was not listed.
    pub fn resource(&self, group: &str, kind: &str) -> Option<&Arc<Resource>> {
        self.resources.get(&(group.to_owned(), kind.to_owned()))
    }

    /// All kinds that were listed.
    pub fn resources(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.values()
    }
}
