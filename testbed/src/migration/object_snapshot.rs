//! What must be the same before and after a migration, in either types.
//!
//! This is the tests' own notion of equality, written apart from the one that is under test.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};
use api::group::{CapiTypes, GroupTable};
use migration::groups::Direction;
use migration::object::Object;
use migration::snapshot::Snapshot;
use migration_executor::{Executor, JOURNAL_NAME};
use serde_json::{Value, json};

use super::{Manner, executor};

/// Metadata that belongs to one stored object only.
const OWN: [&str; 6] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "managedFields",
    "selfLink",
];
/// Where a user's own values are, which name no group even when they look like it.
const OPAQUE: [&str; 1] = ["variables"];

/// All objects of a namespace, without what a migration may change.
#[derive(Debug, Clone, PartialEq)]
pub struct ObjectSnapshot {
    /// The types of the objects of Cluster API; none without any.
    pub capi_types: Option<CapiTypes>,
    /// Objects of Cluster API, under their standard names.
    pub moved: BTreeMap<String, Value>,
    /// All others, with their UID and owners.
    pub others: BTreeMap<String, Value>,
}

// === impl ObjectSnapshot ===

impl ObjectSnapshot {
    /// Takes it.
    pub async fn of(client: &kube::Client, namespace: &str) -> Result<Self> {
        let mut executor = executor(client, namespace, &Manner::default()).await?;
        Self::from(executor.survey(Direction::Forward).await?)
    }

    /// The same, of what was read.
    pub fn from(snapshot: &Snapshot) -> Result<Self> {
        let table = GroupTable::default();
        let mut object_snapshot = Self {
            capi_types: None,
            moved: BTreeMap::new(),
            others: BTreeMap::new(),
        };
        for object in snapshot.objects() {
            match table.find(object.key().group.as_bytes()) {
                Some((pair, capi_types)) => {
                    ensure!(
                        object_snapshot
                            .capi_types
                            .is_none_or(|other| other == capi_types),
                        "there are objects in both types: {}",
                        object.key()
                    );
                    object_snapshot.capi_types = Some(capi_types);
                    let key = object.key().in_group(pair.name(CapiTypes::Standard));
                    object_snapshot
                        .moved
                        .insert(key.to_string(), likeness(object));
                }
                None if object.key().name != JOURNAL_NAME => {
                    let rest = json!({ "uid": object.uid(), "owners": owners(object) });
                    object_snapshot
                        .others
                        .insert(object.key().to_string(), rest);
                }
                None => {}
            }
        }
        Ok(object_snapshot)
    }

    /// Fails with the first difference.
    pub fn same_as(&self, other: &Self) -> Result<()> {
        for (what, one, two) in [
            ("object", &self.moved, &other.moved),
            ("other object", &self.others, &other.others),
        ] {
            let names =
                |all: &BTreeMap<String, Value>| all.keys().cloned().collect::<BTreeSet<_>>();
            let (before, after) = (names(one), names(two));
            let lost: Vec<_> = before.difference(&after).collect();
            let new: Vec<_> = after.difference(&before).collect();
            ensure!(
                lost.is_empty() && new.is_empty(),
                "{what}s lost: {lost:?}, new: {new:?}"
            );
            for (name, value) in one {
                ensure!(
                    two[name] == *value,
                    "{what} {name} was\n{value:#}\nand is\n{:#}",
                    two[name]
                );
            }
        }
        Ok(())
    }

    /// How many objects of a kind there are.
    pub fn count(&self, kind: &str) -> usize {
        let start = format!("{kind}.");
        self.moved
            .keys()
            .filter(|key| key.starts_with(&start))
            .count()
    }
}

/// An object under standard names, without what belongs to one stored object.
fn likeness(object: &Object) -> Value {
    let mut body = object.body().clone();
    let managers = managers(object);
    if let Some(metadata) = body["metadata"].as_object_mut() {
        for field in OWN {
            metadata.remove(field);
        }
        metadata.insert("ownerReferences".to_owned(), owners(object));
        metadata.insert("managers".to_owned(), managers);
    }
    standardise(&GroupTable::default(), &mut body);
    forget_generations(&mut body["status"]);
    body
}

/// Owners without UIDs, in order.
fn owners(object: &Object) -> Value {
    let table = GroupTable::default();
    let owners: BTreeSet<String> = object
        .owners()
        .iter()
        .map(|owner| {
            let group = table.find(owner.group().as_bytes());
            let group = group.map_or(owner.group(), |(pair, _)| pair.name(CapiTypes::Standard));
            let (kind, name) = (&owner.kind, &owner.name);
            let blocks = owner.blocks_deletion;
            format!(
                "{kind}.{group} {name} controller={} blocks={blocks:?}",
                owner.controller
            )
        })
        .collect();
    json!(owners)
}

/// Who manages fields, and how: no manager is lost or added.
fn managers(object: &Object) -> Value {
    let entries: BTreeSet<String> = object
        .managed_fields()
        .into_iter()
        .map(|entry| {
            let text = |field: &str| entry[field].as_str().unwrap_or_default();
            format!(
                "{} {} {}",
                text("manager"),
                text("operation"),
                text("subresource")
            )
        })
        .collect();
    json!(entries)
}

fn standardise(table: &GroupTable, value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| standardise(table, item)),
        Value::Object(fields) => {
            for (name, field) in fields {
                match field {
                    Value::String(text) if name == "apiGroup" || name == "apiVersion" => {
                        *text = standard(table, text);
                    }
                    _ if OPAQUE.contains(&name.as_str()) => {}
                    field => standardise(table, field),
                }
            }
        }
        _ => {}
    }
}

fn standard(table: &GroupTable, text: &str) -> String {
    let (group, rest) = text
        .split_once('/')
        .map_or((text, ""), |(group, rest)| (group, rest));
    match table.find(group.as_bytes()) {
        Some((pair, _)) if rest.is_empty() => pair.name(CapiTypes::Standard).to_owned(),
        Some((pair, _)) => format!("{}/{rest}", pair.name(CapiTypes::Standard)),
        None => text.to_owned(),
    }
}

fn forget_generations(status: &mut Value) {
    if let Some(status) = status.as_object_mut() {
        status.remove("observedGeneration");
    }
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        if let Some(condition) = condition.as_object_mut() {
            condition.remove("observedGeneration");
        }
    }
}

/// Fails unless every owner that an object names is there, and has the UID that is named.
pub fn owners_are_there(snapshot: &Snapshot) -> Result<()> {
    for object in snapshot.objects() {
        for owner in object.owners() {
            let resource = snapshot.resource(owner.group(), &owner.kind);
            if !resource.is_some_and(|resource| resource.namespaced) {
                continue;
            }
            let key = owner.key(&object.key().namespace);
            let found = snapshot.by_uid(&owner.uid);
            ensure!(
                found.is_some_and(|found| *found.key() == key),
                "{} is owned by {key}, which does not have the UID {}",
                object.key(),
                owner.uid
            );
        }
    }
    Ok(())
}

/// What must hold at every instant, as far as one reading shows: no object has only missing owners, and never are both
/// types of a cluster unpaused.
pub fn holds(executor: &Executor) -> Result<()> {
    let snapshot = executor.snapshot();
    let table = GroupTable::default();
    let mut running: BTreeMap<String, BTreeSet<&'static str>> = BTreeMap::new();
    for object in snapshot.objects() {
        let owners = object.owners();
        let alive = owners.iter().filter(|owner| {
            let served = snapshot.resource(owner.group(), &owner.kind).is_some();
            !served || snapshot.by_uid(&owner.uid).is_some()
        });
        ensure!(
            owners.is_empty() || alive.count() > 0,
            "{} has only missing owners",
            object.key()
        );
        let group = object.key().group.as_bytes();
        if let (Some((_, capi_types)), "Cluster") = (table.find(group), object.key().kind.as_str())
            && object.body()["spec"]["paused"] != true
        {
            let capi_types = match capi_types {
                CapiTypes::Standard => "standard",
                CapiTypes::Private => "private",
            };
            let sides = running.entry(object.key().name.clone()).or_default();
            sides.insert(capi_types);
            ensure!(
                sides.len() < 2,
                "Cluster {} is unpaused in both types",
                object.key().name
            );
        }
    }
    Ok(())
}
