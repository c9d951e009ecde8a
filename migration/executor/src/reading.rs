//! Everything that is in the namespaces of a migration: all kinds that the API server serves, found by discovery.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use kube::discovery::{ApiCapabilities, ApiGroup, ApiResource, Scope as KindScope};

use crate::calls::{Calls, Depth};
use crate::response::Rejection;
use migration::failure::Reason;
use migration::groups::Groups;
use migration::journal::Failure;
use migration::object::{Object, Resource};
use migration::snapshot::Snapshot;

/// How many kinds are listed at a time.
const LISTS: usize = 8;
/// Kinds without owners and dependents, of which there may be very many.
const NOT_LISTED: [&str; 2] = ["events", "podmetrics"];

/// All kinds that matter: those in namespaces, and of the groups that are moved also those without.
pub(crate) async fn kinds(calls: &Calls, groups: &Groups) -> Result<Vec<Arc<Resource>>, Failure> {
    let discovery = calls.discover().await;
    let discovery = discovery.map_err(|fault| fault.into_failure("ask which kinds there are"))?;
    let mut kinds = Vec::new();
    for group in discovery.groups() {
        for (resource, capabilities) in group.resources_by_stability() {
            if matters(&resource, &capabilities, groups) {
                kinds.push(Arc::new(kind(group, &resource, &capabilities)));
            }
        }
    }
    Ok(kinds)
}

fn matters(resource: &ApiResource, capabilities: &ApiCapabilities, groups: &Groups) -> bool {
    let moved = is_moved(groups, &resource.group);
    let namespaced = capabilities.scope == KindScope::Namespaced;
    capabilities.supports_operation("list")
        && (namespaced || moved)
        && !NOT_LISTED.contains(&resource.plural.as_str())
}

fn is_moved(groups: &Groups, group: &str) -> bool {
    groups.table().find(group.as_bytes()).is_some()
}

fn kind(group: &ApiGroup, resource: &ApiResource, capabilities: &ApiCapabilities) -> Resource {
    let status = |(below, _): &(ApiResource, ApiCapabilities)| {
        below.plural == "status" || below.plural.ends_with("/status")
    };
    let served = group.versions().filter(|version| {
        let mut kinds = group.versioned_resources(version).into_iter();
        kinds.any(|(other, _)| other.plural == resource.plural)
    });
    Resource {
        group: resource.group.clone(),
        version: resource.version.clone(),
        plural: resource.plural.clone(),
        kind: resource.kind.clone(),
        namespaced: capabilities.scope == KindScope::Namespaced,
        has_status: capabilities.subresources.iter().any(status),
        served: served.map(str::to_owned).collect(),
    }
}

/// How much of a kind's objects is read: contents only of what is moved.
pub(crate) fn depth(groups: &Groups, resource: &Resource) -> Depth {
    if is_moved(groups, &resource.group) {
        Depth::Whole
    } else {
        Depth::Metadata
    }
}

/// Lists everything.
pub(crate) async fn snapshot(
    calls: &Calls,
    groups: &Groups,
    namespaces: &[String],
) -> Result<Snapshot, Failure> {
    let kinds = kinds(calls, groups).await?;
    let mut desired = Vec::new();
    for kind in &kinds {
        // Of kinds without namespaces there is one list.
        let places = if kind.namespaced {
            namespaces
        } else {
            &namespaces[..1]
        };
        for namespace in places {
            desired.push(list(calls, groups, kind, namespace));
        }
    }
    let lists = stream::iter(desired).buffer_unordered(LISTS);
    let lists: Vec<_> = lists.try_collect().await?;
    let mut snapshot = Snapshot::new();
    for (kind, objects) in lists {
        let Some(objects) = objects else {
            snapshot.unlisted(kind.to_string());
            continue;
        };
        snapshot.listed(kind.clone());
        for object in objects {
            snapshot.put(object);
        }
    }
    Ok(snapshot)
}

async fn list<'k>(
    calls: &Calls,
    groups: &Groups,
    kind: &'k Resource,
    namespace: &str,
) -> Result<(&'k Resource, Option<Vec<Object>>), Failure> {
    let found = calls.list(kind, namespace, depth(groups, kind)).await;
    Ok((kind, objects(kind, found)?))
}

/// The objects of a list; nothing when the kind cannot be listed.
fn objects(
    kind: &Resource,
    found: Result<Vec<serde_json::Value>, Rejection>,
) -> Result<Option<Vec<Object>>, Failure> {
    let items = match found {
        Ok(items) => items,
        // The kind went away since it was discovered.
        Err(Rejection::Gone) => return Ok(Some(Vec::new())),
        Err(Rejection::Refused {
            reason: Reason::PermissionDenied,
            ..
        }) => return Ok(None),
        Err(fault) => return Err(fault.into_failure(&format!("list {kind}"))),
    };
    let objects = items.into_iter().map(|item| Object::new(kind, item));
    let objects: Result<_, _> = objects.collect();
    objects.map(Some).map_err(|malformed| Failure {
        reason: Reason::ApiUnavailable,
        message: format!("cannot list {kind}: {malformed}"),
    })
}
