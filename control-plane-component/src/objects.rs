//! Objects of the hosted control plane's namespace, indexed by group, kind and name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::render::Identity;

/// Group, kind and name: kinds of different groups may have the same name.
type Key = (String, String, String);

/// Objects of one namespace. A clone shares them: each component is rendered with one, to which its manifests are added.
#[derive(Debug, Clone, Default)]
pub struct Objects {
    all: BTreeMap<Arc<Key>, Arc<Value>>,
    /// How often an object was added, replaced or removed.
    changes: u64,
    recording: Option<Recording>,
}

/// What is read since recording began. Clones of the objects record in the same place.
#[derive(Debug, Clone)]
struct Recording {
    /// `changes` when it began.
    begun: u64,
    reads: Arc<Mutex<BTreeSet<Read>>>,
}

/// A read of one object, or of all objects of a group and kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Read {
    One(Key),
    Kind(String, String),
}

/// Objects that were read, as they were then.
#[derive(Debug)]
pub struct Seen {
    one: Vec<(Key, Option<Arc<Value>>)>,
    kinds: Vec<SeenKind>,
}

/// All objects of a group and kind.
#[derive(Debug)]
struct SeenKind {
    group: String,
    kind: String,
    objects: Vec<Arc<Value>>,
}

// === impl Objects ===

impl Objects {
    /// Adds an object, or replaces it. An object without a kind or a name is ignored.
    pub fn insert(&mut self, object: Value) {
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        let kind = object["kind"].as_str();
        let name = object["metadata"]["name"].as_str();
        if let (Some(kind), Some(name)) = (kind, name) {
            let key = key(group(api_version), kind, name);
            self.put(key, Arc::new(object));
        }
    }

    fn put(&mut self, key: Key, object: Arc<Value>) {
        self.changes += 1;
        self.all.insert(Arc::new(key), object);
    }

    /// Removes an object.
    pub fn remove(&mut self, identity: &Identity) {
        self.changes += 1;
        self.all
            .remove(&key(identity.group(), &identity.kind, &identity.name));
    }

    /// Removes the objects of a kind whose names are not in this list.
    pub fn retain(&mut self, group: &str, kind: &str, names: &BTreeSet<String>) {
        self.changes += 1;
        self.all
            .retain(|key, _| key.0 != group || key.1 != kind || names.contains(&key.2));
    }

    /// Records from now on what is read, also of clones.
    pub fn record(&mut self) {
        self.recording = Some(Recording {
            begun: self.changes,
            reads: Arc::default(),
        });
    }

    /// Ends recording, and returns what was read; `None` if an object was added, replaced or removed meanwhile.
    pub fn recorded(&mut self) -> Option<Seen> {
        let Recording { begun, reads } = self.recording.take()?;
        if begun != self.changes {
            return None;
        }
        let reads = std::mem::take(&mut *reads.lock().unwrap_or_else(PoisonError::into_inner));
        let mut seen = Seen {
            one: Vec::new(),
            kinds: Vec::new(),
        };
        for read in reads {
            match read {
                Read::One(key) => {
                    let object = self.all.get(&key).cloned();
                    seen.one.push((key, object));
                }
                Read::Kind(group, kind) => {
                    let objects = self.shared(&group, &kind).cloned().collect();
                    seen.kinds.push(SeenKind {
                        group,
                        kind,
                        objects,
                    });
                }
            }
        }
        Some(seen)
    }

    fn read(&self, read: impl FnOnce() -> Read) {
        if let Some(recording) = &self.recording {
            let mut reads = recording
                .reads
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            reads.insert(read());
        }
    }

    fn shared<'a>(&'a self, group: &'a str, kind: &'a str) -> impl Iterator<Item = &'a Arc<Value>> {
        self.range(group, kind).map(|(_, object)| object)
    }

    fn range<'a>(
        &'a self,
        group: &'a str,
        kind: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a Arc<Value>)> {
        self.all
            .range::<Key, _>(key(group, kind, "")..)
            .take_while(move |(key, _)| key.0 == group && key.1 == kind)
            .map(|(key, object)| (key.2.as_str(), object))
    }

    /// Returns an object. The core group is the empty string.
    pub fn get(&self, group: &str, kind: &str, name: &str) -> Option<&Value> {
        let key = key(group, kind, name);
        let found = self.all.get(&key).map(Arc::as_ref);
        self.read(|| Read::One(key));
        found
    }

    /// Returns the object with this identity, ignoring the API version.
    pub fn find(&self, identity: &Identity) -> Option<&Value> {
        self.get(identity.group(), &identity.kind, &identity.name)
    }

    /// Returns all objects of a kind, sorted by name.
    pub fn of_kind<'a>(
        &'a self,
        group: &'a str,
        kind: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a Value)> {
        self.read(|| Read::Kind(group.to_owned(), kind.to_owned()));
        self.range(group, kind)
            .map(|(name, object)| (name, object.as_ref()))
    }

    /// Returns an object as a type, or `None` if it does not deserialize.
    pub fn typed<K: DeserializeOwned>(&self, group: &str, kind: &str, name: &str) -> Option<K> {
        self.get(group, kind, name)
            .and_then(|object| K::deserialize(object).ok())
    }

    /// A Secret.
    pub fn secret(&self, name: &str) -> Option<Secret> {
        self.typed("", "Secret", name)
    }

    /// A value of a Secret.
    pub fn secret_value(&self, name: &str, key: &str) -> Option<Vec<u8>> {
        self.secret(name)?.data?.remove(key).map(|value| value.0)
    }

    /// A `ConfigMap`.
    pub fn config_map(&self, name: &str) -> Option<ConfigMap> {
        self.typed("", "ConfigMap", name)
    }

    /// A value of a `ConfigMap`.
    pub fn config_value(&self, name: &str, key: &str) -> Option<String> {
        self.config_map(name)?.data?.remove(key)
    }
}

// === impl Seen ===

impl Seen {
    /// Whether these objects are still the same: a read of them would have the same result.
    pub fn is_current(&self, objects: &Objects) -> bool {
        let one = |(key, then): &(Key, Option<Arc<Value>>)| match (then, objects.all.get(key)) {
            (None, None) => true,
            (Some(then), Some(now)) => is_same(then, now),
            _ => false,
        };
        let kind = |seen: &SeenKind| {
            let mut now = objects.shared(&seen.group, &seen.kind);
            seen.objects
                .iter()
                .all(|then| now.next().is_some_and(|now| is_same(then, now)))
                && now.next().is_none()
        };
        self.one.iter().all(one) && self.kinds.iter().all(kind)
    }
}

/// Objects of a cache are the same until they change; those of a response equal the ones of the watch.
fn is_same(then: &Arc<Value>, now: &Arc<Value>) -> bool {
    Arc::ptr_eq(then, now) || then == now
}

impl FromIterator<Value> for Objects {
    fn from_iter<I: IntoIterator<Item = Value>>(objects: I) -> Self {
        let mut all = Self::default();
        objects.into_iter().for_each(|object| all.insert(object));
        all
    }
}

fn key(group: &str, kind: &str, name: &str) -> Key {
    (group.to_owned(), kind.to_owned(), name.to_owned())
}

/// The group of an `apiVersion`.
pub(crate) fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Finding F11: a Knative Service is not a core Service.
    #[test]
    fn objects_of_different_groups_are_distinct() {
        let object = |version: &str| json!({ "apiVersion": version, "kind": "Service", "metadata": { "name": "a" } });
        let core = Identity {
            api_version: "v1".to_owned(),
            kind: "Service".to_owned(),
            name: "a".to_owned(),
        };
        let other = "serving.knative.dev";
        let mut objects: Objects = [object("v1"), object("serving.knative.dev/v1")]
            .into_iter()
            .collect();
        assert_eq!(objects.find(&core), Some(&object("v1")));
        assert_eq!(objects.of_kind(other, "Service").count(), 1);
        objects.remove(&core);
        assert_eq!(objects.find(&core), None);
        assert!(objects.get(other, "Service", "a").is_some());
    }

    fn config(name: &str, data: &str) -> Value {
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "key": data } })
    }

    fn identity(name: &str) -> Identity {
        Identity::new("v1", "ConfigMap", name)
    }

    #[test]
    fn only_changes_of_what_was_read_are_noticed() {
        let base: Objects = [config("a", "1"), config("b", "1")].into_iter().collect();
        let read = |read: &dyn Fn(&Objects)| {
            let mut objects = base.clone();
            objects.record();
            // A component is rendered with a clone, to which it adds its manifests.
            let mut rendering = objects.clone();
            rendering.insert(config("own", "1"));
            read(&rendering);
            objects.recorded().unwrap()
        };
        let changed = |change: &dyn Fn(&mut Objects)| {
            let mut objects = base.clone();
            change(&mut objects);
            objects
        };
        let same = changed(&|objects| objects.insert(config("a", "1")));
        let replaced = changed(&|objects| objects.insert(config("a", "2")));
        let removed = changed(&|objects| objects.remove(&identity("a")));
        let added = changed(&|objects| objects.insert(config("c", "1")));
        let one: &dyn Fn(&Objects) = &|objects| drop(objects.config_map("a"));
        let absent: &dyn Fn(&Objects) = &|objects| drop(objects.config_map("c"));
        let all: &dyn Fn(&Objects) =
            &|objects| assert!(objects.of_kind("", "ConfigMap").count() > 0);
        let other: &dyn Fn(&Objects) =
            &|objects| assert_eq!(objects.of_kind("", "Secret").count(), 0);
        for (name, reads, [unchanged, after_replacing, after_removing, after_adding]) in [
            ("one", one, [true, false, false, true]),
            ("absent", absent, [true, true, true, false]),
            ("all", all, [true, false, false, false]),
            ("other", other, [true, true, true, true]),
        ] {
            let seen = read(reads);
            assert_eq!(seen.is_current(&same), unchanged, "{name}");
            assert_eq!(seen.is_current(&replaced), after_replacing, "{name}");
            assert_eq!(seen.is_current(&removed), after_removing, "{name}");
            assert_eq!(seen.is_current(&added), after_adding, "{name}");
        }
    }

    #[test]
    fn nothing_is_recorded_when_objects_changed_meanwhile() {
        let mut objects: Objects = [config("a", "1")].into_iter().collect();
        assert!(objects.recorded().is_none());
        objects.record();
        objects.insert(config("b", "1"));
        assert!(objects.recorded().is_none());
        objects.record();
        objects.remove(&identity("b"));
        assert!(objects.recorded().is_none());
        objects.record();
        assert!(objects.recorded().is_some());
    }

    #[test]
    fn a_list_removes_objects_of_its_kind_only() {
        let mut objects: Objects = [config("a", "1"), config("b", "1")].into_iter().collect();
        objects
            .insert(json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "c" } }));
        objects.retain("", "ConfigMap", &BTreeSet::from(["b".to_owned()]));
        assert_eq!(objects.find(&identity("a")), None);
        assert!(objects.find(&identity("b")).is_some());
        assert!(objects.secret("c").is_some());
    }
}
