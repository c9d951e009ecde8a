//! Objects in memory, with what makes clients of Kubernetes work: versions, preconditions, finalizers, history.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::failure::Failure;
use crate::groups::{Kind, Scope};
use crate::selector::Selector;

/// More than any test has. What clients can send is bounded.
const MAX_OBJECTS: usize = 10_000;
/// Changes that a watch can start from.
const MAX_HISTORY: usize = 1_000;
const MAX_NAME: usize = 253;
/// Fields of metadata that clients do not set.
const OWN_FIELDS: [&str; 4] = ["uid", "creationTimestamp", "deletionTimestamp", "namespace"];

/// Plural, group, namespace and name.
type Key = (&'static str, &'static str, String, String);

/// All objects of one server.
#[derive(Debug)]
pub(crate) struct Store {
    objects: BTreeMap<Key, Arc<Value>>,
    version: u64,
    history: VecDeque<Change>,
}

/// A change of one object.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) kind: &'static Kind,
    pub(crate) version: u64,
    /// Absent if it is created.
    pub(crate) before: Option<Arc<Value>>,
    /// Absent if it is deleted.
    pub(crate) after: Option<Arc<Value>>,
}

/// Values that a write adds.
#[derive(Debug, Clone)]
pub(crate) struct Stamp {
    /// The time, RFC 3339.
    pub(crate) time: String,
    pub(crate) uid: String,
}

/// What must hold for a write: fields of `metadata`, as far as they are given.
#[derive(Debug, Default)]
pub(crate) struct Preconditions {
    uid: Option<String>,
    version: Option<String>,
}

/// An object's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) kind: &'static Kind,
    /// Empty for cluster-scoped objects.
    pub(crate) namespace: String,
    pub(crate) name: String,
}

// === impl Store ===

impl Store {
    /// An empty store whose versions are greater than `version`: those of an earlier process must not be repeated.
    pub(crate) fn new(version: u64) -> Self {
        Self {
            objects: BTreeMap::new(),
            version,
            history: VecDeque::new(),
        }
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn get(&self, place: &Place) -> Result<Arc<Value>, Failure> {
        let found = self.objects.get(&place.key()).cloned();
        found.ok_or_else(|| place.not_found())
    }

    /// The objects of a kind, of all namespaces if none is named.
    pub(crate) fn list(
        &self,
        kind: &'static Kind,
        namespace: &str,
        selector: &Selector,
    ) -> Vec<Arc<Value>> {
        let first = (kind.plural, kind.group, namespace.to_owned(), String::new());
        let objects = self.objects.range(first..);
        let objects = objects
            .take_while(|((plural, group, ..), _)| (*plural, *group) == (kind.plural, kind.group))
            .filter(|((_, _, of, _), _)| namespace.is_empty() || of == namespace)
            .map(|(_, object)| object);
        objects.filter(|it| selector.matches(it)).cloned().collect()
    }

    /// Creates an object; the name is the one in its metadata, or is generated.
    pub(crate) fn create(
        &mut self,
        kind: &'static Kind,
        namespace: &str,
        mut object: Value,
        stamp: &Stamp,
    ) -> Result<Arc<Value>, Failure> {
        check_type(kind, &object)?;
        let name = name_of(&object, stamp)?;
        let place = Place::new(kind, namespace, &name);
        if self.objects.contains_key(&place.key()) {
            let problem = format!("{} already exists", kind.named(&name));
            return Err(Failure::new(409, "AlreadyExists", problem));
        }
        if self.objects.len() >= MAX_OBJECTS {
            return Err(Failure::new(
                403,
                "Forbidden",
                "the store of this stand-in is full",
            ));
        }
        let metadata = &mut object["metadata"];
        if let Some(metadata) = metadata.as_object_mut() {
            for field in OWN_FIELDS {
                metadata.remove(field);
            }
        }
        metadata["name"] = json!(name);
        if kind.scope == Scope::Namespaced {
            metadata["namespace"] = json!(namespace);
        }
        metadata["uid"] = json!(stamp.uid);
        metadata["creationTimestamp"] = json!(stamp.time);
        Ok(self.put(&place, None, object))
    }

    /// Replaces an object.
    pub(crate) fn update(
        &mut self,
        place: &Place,
        mut object: Value,
    ) -> Result<Arc<Value>, Failure> {
        let live = self.get(place)?;
        check_type(place.kind, &object)?;
        Preconditions::of(&object["metadata"]).check(place, &live)?;
        if object["metadata"]["name"] != place.name.as_str() {
            return Err(Failure::bad_request(format!(
                "the name of the object does not match {}",
                place.kind.named(&place.name)
            )));
        }
        for field in OWN_FIELDS {
            let value = live["metadata"][field].clone();
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.remove(field);
                if !value.is_null() {
                    metadata.insert(field.to_owned(), value);
                }
            }
        }
        object["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"].clone();
        if object == *live {
            return Ok(live);
        }
        if is_released(&object) {
            return Ok(self.remove(place, &live));
        }
        Ok(self.put(place, Some(live), object))
    }

    /// Applies a JSON merge patch.
    pub(crate) fn patch(&mut self, place: &Place, patch: &Value) -> Result<Arc<Value>, Failure> {
        let live = self.get(place)?;
        let mut object = (*live).clone();
        json_patch::merge(&mut object, patch);
        self.update(place, object)
    }

    /// Deletes an object, or marks it as being deleted while it has finalizers.
    pub(crate) fn delete(
        &mut self,
        place: &Place,
        preconditions: &Preconditions,
        stamp: &Stamp,
    ) -> Result<Arc<Value>, Failure> {
        let live = self.get(place)?;
        preconditions.check(place, &live)?;
        if !has_finalizers(&live) {
            return Ok(self.remove(place, &live));
        }
        if !live["metadata"]["deletionTimestamp"].is_null() {
            return Ok(live);
        }
        let mut object = (*live).clone();
        object["metadata"]["deletionTimestamp"] = json!(stamp.time);
        Ok(self.put(place, Some(live), object))
    }

    /// The changes after a version; none if they are no longer known.
    pub(crate) fn changes_after(&self, version: u64) -> Result<Vec<Change>, Failure> {
        let oldest = self.history.front().map(|change| change.version);
        let is_complete = oldest.is_none_or(|oldest| oldest <= version + 1);
        // Without a change, only the current version is known.
        if !is_complete || (oldest.is_none() && version < self.version) {
            let problem = format!("too old resource version: {version} ({})", self.version);
            return Err(Failure::new(410, "Expired", problem));
        }
        let changes = self.history.iter().filter(|it| it.version > version);
        Ok(changes.cloned().collect())
    }

    fn put(&mut self, place: &Place, before: Option<Arc<Value>>, mut object: Value) -> Arc<Value> {
        let version = self.next();
        object["metadata"]["resourceVersion"] = json!(version);
        let object = Arc::new(object);
        self.objects.insert(place.key(), Arc::clone(&object));
        self.record(place, before, Some(Arc::clone(&object)));
        object
    }

    fn remove(&mut self, place: &Place, live: &Value) -> Arc<Value> {
        self.objects.remove(&place.key());
        let version = self.next();
        let mut last = live.clone();
        last["metadata"]["resourceVersion"] = json!(version);
        let last = Arc::new(last);
        self.record(place, Some(Arc::clone(&last)), None);
        last
    }

    fn next(&mut self) -> String {
        self.version += 1;
        self.version.to_string()
    }

    fn record(&mut self, place: &Place, before: Option<Arc<Value>>, after: Option<Arc<Value>>) {
        if self.history.len() >= MAX_HISTORY {
            self.history.pop_front();
        }
        self.history.push_back(Change {
            kind: place.kind,
            version: self.version,
            before,
            after,
        });
    }
}

// === impl Preconditions ===

impl Preconditions {
    /// Of `metadata`, or of the preconditions in `DeleteOptions`.
    pub(crate) fn of(fields: &Value) -> Self {
        let text = |field: &str| {
            let text = fields[field].as_str().filter(|text| !text.is_empty());
            text.map(str::to_owned)
        };
        Self {
            uid: text("uid"),
            version: text("resourceVersion"),
        }
    }

    fn check(&self, place: &Place, live: &Value) -> Result<(), Failure> {
        for (desired, field) in [(&self.uid, "uid"), (&self.version, "resourceVersion")] {
            if let Some(desired) = desired
                && live["metadata"][field] != desired.as_str()
            {
                let object = place.kind.named(&place.name);
                return Err(Failure::conflict(format!(
                    "Operation cannot be fulfilled on {object}: the object has another {field}"
                )));
            }
        }
        Ok(())
    }
}

// === impl Place ===

impl Place {
    pub(crate) fn new(kind: &'static Kind, namespace: &str, name: &str) -> Self {
        Self {
            kind,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// The place of an object that exists.
    pub(crate) fn of(kind: &'static Kind, object: &Value) -> Self {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        Self::new(kind, text("namespace"), text("name"))
    }

    fn key(&self) -> Key {
        let Self {
            kind,
            namespace,
            name,
        } = self;
        (kind.plural, kind.group, namespace.clone(), name.clone())
    }

    fn not_found(&self) -> Failure {
        let problem = format!("{} not found", self.kind.named(&self.name));
        Failure::new(404, "NotFound", problem)
    }
}

fn check_type(kind: &Kind, object: &Value) -> Result<(), Failure> {
    let version = kind.api_version();
    if object["apiVersion"] == version.as_str() && object["kind"] == kind.kind {
        return Ok(());
    }
    Err(Failure::bad_request(format!(
        "the object provided is not a {} of {version}",
        kind.kind
    )))
}

fn name_of(object: &Value, stamp: &Stamp) -> Result<String, Failure> {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    let name = match (text("name"), text("generateName")) {
        ("", "") => return Err(Failure::invalid("name or generateName is required")),
        ("", prefix) => format!("{prefix}{}", stamp.uid.get(..5).unwrap_or_default()),
        (name, _) => name.to_owned(),
    };
    if name.len() > MAX_NAME || name.contains(['/', '%']) || [".", ".."].contains(&name.as_str()) {
        return Err(Failure::invalid(format!(
            "metadata.name: invalid value: at most {MAX_NAME} bytes, without / and %"
        )));
    }
    Ok(name)
}

fn has_finalizers(object: &Value) -> bool {
    let finalizers = object["metadata"]["finalizers"].as_array();
    finalizers.is_some_and(|finalizers| !finalizers.is_empty())
}

/// Whether nothing holds an object that is being deleted.
fn is_released(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null() && !has_finalizers(object)
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
