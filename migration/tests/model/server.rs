//! An API server in memory, with what a migration depends on: UIDs, resource versions, generations, subresources,
//! preconditions, finalizers, field owners, and a garbage collector.

use std::collections::BTreeMap;

use migration::machine::{Act, Format, Propagation, Subresource, Write};
use migration::object::{Object, ObjectKey, Owner, Resource};
use migration::snapshot::Snapshot;
use migration::target::FIELD_MANAGER;
use serde_json::{Value, json};

/// Why a write was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Conflict,
    AlreadyExists,
    NotFound,
    Invalid,
}

#[derive(Debug, Clone)]
pub(crate) struct Server {
    /// What is stored.
    pub(crate) store: Snapshot,
    counter: u64,
    /// Seconds since the first object.
    pub(crate) clock: u64,
    /// Whether another client did what a test has it do.
    pub(crate) touched: bool,
}

impl Server {
    pub(crate) fn new(resources: &[Resource]) -> Self {
        let mut store = Snapshot::new();
        for resource in resources {
            store.listed(resource.clone());
        }
        Self {
            store,
            counter: 0,
            clock: 0,
            touched: false,
        }
    }

    pub(crate) fn get(&self, key: &ObjectKey) -> Option<&Object> {
        self.store.get(key)
    }

    fn next(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    fn resource(&self, key: &ObjectKey) -> std::sync::Arc<Resource> {
        let resource = self.store.resource(&key.group, &key.kind);
        resource.expect("a kind that is served").clone()
    }

    /// Stores an object with status, age and field owners as given.
    pub(crate) fn seed(&mut self, resource: &Resource, mut body: Value) -> Object {
        let (uid, version) = (self.next(), self.next());
        let metadata = body["metadata"].as_object_mut().expect("metadata");
        metadata.insert("uid".into(), format!("uid-{uid}").into());
        metadata.insert("resourceVersion".into(), version.to_string().into());
        metadata.entry("generation").or_insert(json!(1));
        metadata
            .entry("creationTimestamp")
            .or_insert(stamp(self.clock).into());
        let object = Object::new(resource, body).expect("an object");
        self.store.put(object.clone());
        object
    }

    pub(crate) fn write(&mut self, write: &Write) -> Result<Option<Object>, Refusal> {
        match &write.act {
            Act::Create(body) => self
                .create(&write.resource, &write.key, body.clone())
                .map(Some),
            Act::Patch {
                format,
                subresource,
                body,
            } => self.patch(&write.key, *format, *subresource, body),
            Act::Delete {
                uid,
                resource_version,
                propagation,
            } => self.delete(&write.key, Some((uid, resource_version)), *propagation),
        }
    }

    pub(crate) fn create(
        &mut self,
        resource: &Resource,
        key: &ObjectKey,
        mut body: Value,
    ) -> Result<Object, Refusal> {
        if self.get(key).is_some() {
            return Err(Refusal::AlreadyExists);
        }
        if body["apiVersion"] != json!(resource.api_version()) {
            return Err(Refusal::Invalid);
        }
        if resource.has_status {
            body.as_object_mut().expect("fields").remove("status");
        }
        let metadata = body["metadata"].as_object_mut().expect("metadata");
        for field in [
            "uid",
            "resourceVersion",
            "generation",
            "creationTimestamp",
            "managedFields",
        ] {
            assert!(!metadata.contains_key(field), "{key} is made with {field}");
        }
        metadata.insert(
            "managedFields".into(),
            json!([own_entry(resource, "Update")]),
        );
        if controllers(&body) > 1 {
            return Err(Refusal::Invalid);
        }
        Ok(self.seed(resource, body))
    }

    fn patch(
        &mut self,
        key: &ObjectKey,
        format: Format,
        subresource: Option<Subresource>,
        patch: &Value,
    ) -> Result<Option<Object>, Refusal> {
        let before = self.get(key).ok_or(Refusal::NotFound)?.clone();
        let resource = self.resource(key);
        let whole = before.whole();
        let mut body = whole.clone();
        match format {
            Format::Merge => merge(&mut body, patch),
            Format::Json => operate(&mut body, patch)?,
        }
        if body["metadata"]["resourceVersion"] != json!(before.resource_version()) {
            return Err(Refusal::Conflict);
        }
        let given = body["metadata"]["managedFields"] != whole["metadata"]["managedFields"];
        let mut next = whole.clone();
        match subresource {
            Some(Subresource::Status) => {
                assert!(resource.has_status, "{key} has no status subresource");
                replace(&mut next, &body, "status");
            }
            None => {
                if resource.has_status {
                    let status = before.body().get("status").cloned();
                    put(&mut body, "status", status);
                }
                next = body;
            }
        }
        if next == whole {
            return Ok(Some(before));
        }
        if controllers(&next) > 1 {
            return Err(Refusal::Invalid);
        }
        let empty = |field: &str| {
            next["metadata"][field]
                .as_array()
                .is_some_and(Vec::is_empty)
        };
        assert!(!empty("managedFields"), "{key} loses its field owners");
        if !given {
            own(&mut next, &resource, subresource);
        }
        Ok(self.store_changed(&before, next))
    }

    /// Stores a change; an object that is being deleted and has no finalizer left is gone.
    fn store_changed(&mut self, before: &Object, mut next: Value) -> Option<Object> {
        let content = |body: &Value| {
            let mut body = body.clone();
            let fields = body.as_object_mut().expect("fields");
            fields.remove("metadata");
            fields.remove("status");
            body
        };
        if content(before.body()) != content(&next) {
            next["metadata"]["generation"] = (before.generation() + 1).into();
        }
        next["metadata"]["resourceVersion"] = self.next().to_string().into();
        let resource = self.resource(before.key());
        let object = Object::new(&resource, next).expect("an object");
        if object.is_being_deleted() && object.finalizers().is_empty() {
            self.store.remove(object.key());
            return None;
        }
        self.store.put(object.clone());
        Some(object)
    }

    /// Changes an object as another client does.
    pub(crate) fn change(&mut self, key: &ObjectKey, change: impl FnOnce(&mut Value)) {
        let before = self.get(key).expect("an object to change").clone();
        let whole = before.whole();
        let mut body = whole.clone();
        change(&mut body);
        if body != whole {
            self.store_changed(&before, body);
        }
    }

    pub(crate) fn delete(
        &mut self,
        key: &ObjectKey,
        precondition: Option<(&str, &str)>,
        propagation: Propagation,
    ) -> Result<Option<Object>, Refusal> {
        let object = self.get(key).ok_or(Refusal::NotFound)?.clone();
        if precondition.is_some_and(|pair| pair != (object.uid(), object.resource_version())) {
            return Err(Refusal::Conflict);
        }
        let mut body = object.whole();
        body["metadata"]["deletionTimestamp"] = stamp(self.clock).into();
        if propagation == Propagation::Orphan {
            let mut finalizers: Vec<_> = object.finalizers();
            finalizers.push("orphan");
            body["metadata"]["finalizers"] = json!(finalizers);
        }
        Ok(self.store_changed(&object, body))
    }

    /// One round of the garbage collector: what it deletes.
    pub(crate) fn collect(&mut self) -> Vec<ObjectKey> {
        let mut deleted = Vec::new();
        let orphaning = |object: &&Object| object.finalizers().contains(&"orphan");
        let orphaned: Vec<_> = self.store.objects().filter(orphaning).cloned().collect();
        for owner in orphaned {
            self.orphan(&owner);
        }
        let owned: Vec<_> = self
            .store
            .objects()
            .filter(|object| !object.owners().is_empty() && !object.is_being_deleted())
            .cloned()
            .collect();
        for object in owned {
            let owners = object.owners();
            let solid: Vec<_> = owners
                .iter()
                .filter(|owner| self.is_there(&object, owner))
                .collect();
            if solid.is_empty() {
                deleted.push(object.key().clone());
                self.delete(object.key(), None, Propagation::Background)
                    .expect("a deletion");
            } else if solid.len() < owners.len() {
                let kept: Vec<_> = solid.into_iter().map(Owner::to_value).collect();
                self.change(object.key(), |body| {
                    body["metadata"]["ownerReferences"] = json!(kept)
                });
            }
        }
        deleted
    }

    fn orphan(&mut self, owner: &Object) {
        let dependents: Vec<_> = self.store.objects().cloned().collect();
        for dependent in dependents {
            let owners = dependent.owners();
            let kept: Vec<_> = owners.iter().filter(|o| o.uid != owner.uid()).collect();
            if kept.len() < owners.len() {
                let kept: Vec<_> = kept.into_iter().map(Owner::to_value).collect();
                self.change(dependent.key(), |body| {
                    body["metadata"]["ownerReferences"] = json!(kept)
                });
            }
        }
        self.change(owner.key(), |body| {
            let finalizers = body["metadata"]["finalizers"]
                .as_array_mut()
                .expect("finalizers");
            finalizers.retain(|name| name != "orphan");
        });
    }

    fn is_there(&self, dependent: &Object, owner: &Owner) -> bool {
        let Some(resource) = self.store.resource(owner.group(), &owner.kind) else {
            return true;
        };
        let namespace = if resource.namespaced {
            &dependent.key().namespace
        } else {
            ""
        };
        let found = self.get(&owner.key(namespace));
        found.is_some_and(|found| found.uid() == owner.uid)
    }

    /// Summarizes what a client sees that knows nothing of a migration: no versions, no field owners.
    pub(crate) fn content(&self) -> BTreeMap<ObjectKey, Value> {
        let objects = self.store.objects().map(|object| {
            let mut body = object.body().clone();
            let metadata = body["metadata"].as_object_mut().expect("metadata");
            metadata.remove("resourceVersion");
            metadata.remove("generation");
            metadata.retain(|_, value| *value != json!({}) && *value != json!([]));
            if object.key().kind == "Cluster" {
                observe(&mut body, None);
            }
            (object.key().clone(), body)
        });
        objects.collect()
    }
}

/// Sets or removes `observedGeneration` everywhere.
pub(crate) fn observe(value: &mut Value, generation: Option<i64>) {
    match value {
        Value::Object(fields) => {
            if fields.contains_key("observedGeneration") {
                match generation {
                    Some(generation) => {
                        fields.insert("observedGeneration".into(), generation.into())
                    }
                    None => fields.remove("observedGeneration"),
                };
            }
            fields
                .values_mut()
                .for_each(|field| observe(field, generation));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| observe(item, generation)),
        _ => {}
    }
}

pub(crate) fn stamp(second: u64) -> String {
    let (hours, minutes, seconds) = (second / 3600, second / 60 % 60, second % 60);
    format!("2026-01-01T{hours:02}:{minutes:02}:{seconds:02}Z")
}

fn controllers(body: &Value) -> usize {
    let owners = body["metadata"]["ownerReferences"].as_array();
    let owners = owners.into_iter().flatten();
    owners
        .filter(|owner| owner["controller"] == json!(true))
        .count()
}

fn own_entry(resource: &Resource, operation: &str) -> Value {
    json!({
        "manager": FIELD_MANAGER,
        "operation": operation,
        "apiVersion": resource.api_version(),
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:annotations": {}}},
    })
}

/// The writer becomes one of the field owners, once.
fn own(body: &mut Value, resource: &Resource, subresource: Option<Subresource>) {
    let mut entry = own_entry(resource, "Update");
    if subresource.is_some() {
        entry["subresource"] = "status".into();
    }
    let entries = &mut body["metadata"]["managedFields"];
    if entries.is_null() {
        *entries = json!([]);
    }
    let entries = entries.as_array_mut().expect("entries");
    if !entries.contains(&entry) {
        entries.push(entry);
    }
}

fn put(body: &mut Value, field: &str, value: Option<Value>) {
    let fields = body.as_object_mut().expect("fields");
    match value {
        Some(value) => fields.insert(field.to_owned(), value),
        None => fields.remove(field),
    };
}

fn replace(body: &mut Value, from: &Value, field: &str) {
    put(body, field, from.get(field).cloned());
}

fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (name, value) in fields {
        if value.is_null() {
            target.as_object_mut().expect("fields").remove(name);
        } else {
            merge(&mut target[name.as_str()], value);
        }
    }
}

/// The operations that a migration uses: `add` and `replace` of a field, and `remove`.
fn operate(target: &mut Value, patch: &Value) -> Result<(), Refusal> {
    for operation in patch.as_array().expect("operations") {
        let pointer = operation["path"].as_str().expect("a path");
        let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
        let name = name.replace("~1", "/").replace("~0", "~");
        let parent = target.pointer_mut(parent).ok_or(Refusal::Invalid)?;
        let fields = parent.as_object_mut().ok_or(Refusal::Invalid)?;
        match operation["op"].as_str() {
            Some("add") => {
                fields.insert(name, operation["value"].clone());
            }
            Some("replace") if fields.contains_key(&name) => {
                fields.insert(name, operation["value"].clone());
            }
            Some("remove") if fields.contains_key(&name) => {
                fields.remove(&name);
            }
            _ => return Err(Refusal::Invalid),
        }
    }
    Ok(())
}
