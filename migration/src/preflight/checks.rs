//! The checks. Each reports everything that it finds, so that all of it can be fixed at once.

use std::collections::{BTreeMap, BTreeSet};

use super::{Case, Severity, schema};
use crate::inventory::{Left, Verdict, originals, references};
use crate::object::{Object, ObjectKey};
use crate::target::Way;
use crate::target::owners::resolve;

type Found = Vec<(Severity, String)>;
type Check = fn(&Case<'_>) -> Found;

/// All checks, by the name that findings carry.
pub(super) const ALL: [(&str, Check); 13] = [
    ("deletions", deletions),
    ("target-is-empty", target_is_empty),
    ("kinds", kinds),
    ("schemas", schemas),
    ("owners", owners),
    ("rights", rights),
    ("quotas", quotas),
    ("operations", operations),
    ("references", references_resolve),
    ("pauses", pauses),
    ("field-managers", field_managers),
    ("unread-kinds", unread_kinds),
    ("names-elsewhere", names_elsewhere),
];
/// Annotations by which controllers say that they are in the middle of something.
const UNDER_WAY: [&str; 2] = [
    "controlplane.cluster.x-k8s.io/remediation-in-progress",
    "runtime.cluster.x-k8s.io/pending-hooks",
];
/// Annotation for `clusterctl move`, which deletes what it has moved: a provider with another operator below it, such as the
/// one for Azure, has it on its objects until they are paused and that operator is detached. A migration deletes nothing
/// that a provider or another operator acts on, so it does not wait.
const BLOCK_MOVE: &str = "clusterctl.cluster.x-k8s.io/block-move";
/// Beginnings of the names of field managers that write what a repository says, whatever is there.
const GITOPS: [&str; 5] = ["argocd", "flux", "gotk", "helm", "kustomize-controller"];

fn deletions(case: &Case<'_>) -> Found {
    let deleted = originals(case.groups, case.snapshot).filter(|object| object.is_being_deleted());
    let found = deleted.map(|object| {
        blocks(format!(
            "{} is being deleted: wait until it is gone",
            object.key()
        ))
    });
    found.collect()
}

fn target_is_empty(case: &Case<'_>) -> Found {
    let there = case
        .snapshot
        .objects()
        .map(Object::key)
        .filter(|key| case.groups.is_target(&key.group) && !key.namespace.is_empty());
    let found = there.map(|key| {
        blocks(format!(
            "{key} is there already: delete it, or roll the migration back that made it"
        ))
    });
    found.collect()
}

fn kinds(case: &Case<'_>) -> Found {
    let way = way(case);
    let mut found = BTreeMap::new();
    for original in originals(case.groups, case.snapshot) {
        let key = original.key();
        if let Err(error) = way.resource(original) {
            found
                .entry((&key.group, &key.kind))
                .or_insert(error.to_string());
        }
    }
    let missing =
        case.facts.definitions.iter().filter(|definition| {
            case.groups.is_target(&definition.group) && !definition.established
        });
    let missing = missing.map(|definition| {
        format!(
            "the CRD of {}.{} is not established: look at its conditions",
            definition.kind, definition.group
        )
    });
    found.into_values().chain(missing).map(blocks).collect()
}

fn schemas(case: &Case<'_>) -> Found {
    let way = way(case);
    let mut found = Found::new();
    for original in originals(case.groups, case.snapshot) {
        let Ok(resource) = way.resource(original) else {
            continue;
        };
        let definition = case.facts.definitions.iter().find(|definition| {
            definition.group == resource.group && definition.kind == resource.kind
        });
        let Some(schema) = definition.and_then(|known| known.schemas.get(&resource.version)) else {
            continue;
        };
        let pruned = schema::pruned(&way.swapped(original), schema);
        if !pruned.is_empty() {
            found.push(blocks(format!(
                "{} would lose {}, which {resource} does not know: derive that CRD again",
                original.key(),
                pruned.join(", "),
            )));
        }
    }
    found
}

fn owners(case: &Case<'_>) -> Found {
    let mut found = Found::new();
    for object in case.snapshot.objects() {
        let owners = object.owners();
        let concerned = owners
            .iter()
            .any(|owner| case.groups.is_source(owner.group()));
        if !concerned {
            continue;
        }
        if owners.iter().filter(|owner| owner.controller).count() > 1 {
            found.push(blocks(format!(
                "{} has two controllers: remove one",
                object.key()
            )));
        }
        let missing = owners.iter().filter(|owner| {
            case.groups.is_source(owner.group()) && resolve(case.snapshot, object, owner).is_none()
        });
        let missing: Vec<_> = missing
            .map(|owner| format!("{} {}", owner.kind, owner.name))
            .collect();
        let names = missing.join(", ");
        if missing.is_empty() {
        } else if missing.len() == owners.len() {
            found.push(blocks(format!(
                "{} is owned by {names} only, which is not there: the garbage collector is about to delete it",
                object.key()
            )));
        } else {
            found.push(note(format!(
                "{} is owned by {names}, too, which is not there: that owner is left out",
                object.key()
            )));
        }
    }
    found
}

fn rights(case: &Case<'_>) -> Found {
    let found = case.facts.denied.iter().map(|denied| {
        let place = match denied.namespace.as_str() {
            "" => "in the whole cluster".to_owned(),
            namespace => format!("in namespace {namespace}"),
        };
        blocks(format!(
            "may not {} {} {place}: grant it",
            denied.verb, denied.resource
        ))
    });
    found.collect()
}

fn quotas(case: &Case<'_>) -> Found {
    let mut desired: BTreeMap<(String, String), u64> = BTreeMap::new();
    let way = way(case);
    for original in originals(case.groups, case.snapshot) {
        if let Ok(resource) = way.resource(original) {
            let counted = format!("count/{resource}");
            *desired
                .entry((original.key().namespace.clone(), counted))
                .or_default() += 1;
        }
    }
    let found = case.facts.quotas.iter().filter_map(|quota| {
        let desired = desired.get(&(quota.namespace.clone(), quota.counted.clone()))?;
        (*desired > quota.free).then(|| {
            blocks(format!(
                "ResourceQuota {}/{} leaves room for {} of {}, and {desired} are to be made: raise it",
                quota.namespace, quota.name, quota.free, quota.counted
            ))
        })
    });
    found.collect()
}

fn operations(case: &Case<'_>) -> Found {
    let mut found = Found::new();
    for original in originals(case.groups, case.snapshot) {
        for annotation in UNDER_WAY {
            if original.annotation(annotation).is_some() {
                found.push(blocks(format!(
                    "{} is in the middle of something (annotation {annotation}): wait until it is through",
                    original.key()
                )));
            }
        }
        if original.key().kind == "Machine" && original.text("/status/nodeRef/name").is_none() {
            found.push(note(format!(
                "{} has no node yet: it waits while its controllers are stopped, and its bootstrap token may expire",
                original.key()
            )));
        }
    }
    found.extend(held_from_clusterctl(case));
    found
}

fn held_from_clusterctl(case: &Case<'_>) -> Option<(Severity, String)> {
    let held = originals(case.groups, case.snapshot);
    let mut held = held.filter(|original| original.annotation(BLOCK_MOVE).is_some());
    let first = held.next()?;
    let count = 1 + held.count();
    Some(note(format!(
        "{count} objects, the first of them {}, have annotation {BLOCK_MOVE}, for which clusterctl would wait; a \
         migration need not",
        first.key()
    )))
}

fn references_resolve(case: &Case<'_>) -> Found {
    let mut found = Found::new();
    for original in originals(case.groups, case.snapshot) {
        let namespace = &original.key().namespace;
        let named = references(case.groups, original)
            .into_iter()
            .map(|reference| reference.to);
        for to in named.chain(class_elsewhere(original)) {
            if is_known(case, &to) {
                continue;
            }
            found.push(if to.namespace == *namespace {
                note(format!("{} refers to {to}, which is not there", original.key()))
            } else {
                blocks(format!(
                    "{} refers to {to}, which is not moved with it: migrate both namespaces together",
                    original.key()
                ))
            });
        }
    }
    found
}

fn is_known(case: &Case<'_>, key: &ObjectKey) -> bool {
    let global = ObjectKey {
        namespace: String::new(),
        ..key.clone()
    };
    // A kind that was not listed is unknown.
    case.snapshot.resource(&key.group, &key.kind).is_none()
        || case.snapshot.get(key).is_some()
        || case.snapshot.get(&global).is_some()
}

/// The class of a Cluster in another namespace.
fn class_elsewhere(cluster: &Object) -> Option<ObjectKey> {
    Some(ObjectKey {
        kind: "ClusterClass".to_owned(),
        namespace: cluster
            .text("/spec/topology/classRef/namespace")?
            .to_owned(),
        name: cluster.text("/spec/topology/classRef/name")?.to_owned(),
        group: cluster.key().group.clone(),
    })
}

fn pauses(case: &Case<'_>) -> Found {
    let paused = originals(case.groups, case.snapshot).filter(|object| {
        object.key().kind == "Cluster"
            && object.body().pointer("/spec/paused") == Some(&true.into())
    });
    let found = paused.map(|object| note(format!("{} is paused, and stays so", object.key())));
    found.collect()
}

fn field_managers(case: &Case<'_>) -> Found {
    let mut managers: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for original in originals(case.groups, case.snapshot) {
        for entry in original.managed_fields() {
            let name = entry["manager"].as_str().unwrap_or_default();
            if GITOPS.iter().any(|gitops| name.starts_with(gitops)) {
                let managed = managers.entry(name.to_owned()).or_default();
                managed.insert(original.key().to_string());
            }
        }
    }
    let found = managers.into_iter().map(|(manager, objects)| {
        note(format!(
            "{manager} manages {}: configure it for the other group, or it creates the old objects again",
            objects.into_iter().collect::<Vec<_>>().join(", ")
        ))
    });
    found.collect()
}

fn unread_kinds(case: &Case<'_>) -> Found {
    let found = case.snapshot.unread().map(|kind| {
        note(format!(
            "{kind} cannot be read: objects of it that a moved one owns lose their owner and are not deleted"
        ))
    });
    found.collect()
}

fn names_elsewhere(case: &Case<'_>) -> Found {
    let entries = case.inventory.entries.iter();
    let found = entries.filter_map(|entry| match &entry.verdict {
        Verdict::Leave {
            reason: Left::NamesGroup(places),
        } => Some(note(format!(
            "{} names a group at {}: its owner has to change it",
            entry.object,
            places.join(", ")
        ))),
        _ => None,
    });
    found.collect()
}

fn way<'a>(case: &Case<'a>) -> Way<'a> {
    Way {
        groups: case.groups,
        snapshot: case.snapshot,
        owners_later: false,
    }
}

fn blocks(message: String) -> (Severity, String) {
    (Severity::Blocks, message)
}

fn note(message: String) -> (Severity, String) {
    (Severity::Note, message)
}
