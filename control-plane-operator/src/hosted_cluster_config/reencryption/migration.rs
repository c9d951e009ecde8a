//! Rewriting stored objects: one StorageVersionMigration per resource, which kube-storage-version-migrator carries out.
//!
//! An annotation says for which key a migration is. One for another key is replaced, and one that failed is repeated
//! after a while; a migration that this operator did not create is left alone.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, PostParams,
    Preconditions,
};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use support::reconcile::{is_conflict, is_missing};

use super::super::error::Error;

const MANAGER: &str = "hosted-cluster-config-operator";
/// Annotation: the key with which a migration writes.
const WRITE_KEY: &str = "encryption.apiserver.operator.openshift.io/write-key";
/// Time until a failed migration is repeated.
const RETRY_AFTER: SignedDuration = SignedDuration::from_mins(10);

/// How far all migrations are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Progress {
    /// What is being rewritten.
    Running(String),
    /// What failed, and why.
    Failed(String),
    Done,
}

/// What a migration needs.
#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Absent,
    /// It was for another key, or failed a while ago.
    Outdated,
    Running,
    Succeeded,
    Failed(String),
}

/// A resource, as the encryption configuration names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Resource<'a> {
    group: &'a str,
    name: &'a str,
}

/// Migrates resources to a key, and returns how far the migrations are. Resources that are not served are skipped.
pub(super) async fn run(
    guest: &kube::Client,
    resources: &[String],
    fingerprint: &str,
    now: Timestamp,
) -> Result<Progress, Error> {
    let api: Api<DynamicObject> = Api::all_with(guest.clone(), &kind());
    let found = match api.list(&ListParams::default()).await {
        Err(error) if is_missing(&error) => {
            let what = "the hosted cluster does not serve StorageVersionMigrations yet";
            return Ok(Progress::Running(what.to_owned()));
        }
        found => found.map_err(Error::client("list StorageVersionMigrations"))?,
    };
    let found: BTreeMap<_, _> = found.into_iter().map(|it| (it.name_any(), it)).collect();
    let key = format!("encryption-key-{fingerprint}");
    let mut states = Vec::new();
    for text in resources {
        let resource = Resource::parse(text);
        let known = found.get(&resource.migration());
        let state = match state(known, &key, now) {
            State::Absent | State::Outdated => {
                let Some(version) = version(guest, resource).await? else {
                    continue;
                };
                replace(&api, known, &resource.object(&version, &key)).await?;
                State::Running
            }
            state => state,
        };
        states.push((text.as_str(), state));
    }
    Ok(progress(&states))
}

fn kind() -> ApiResource {
    let kind = GroupVersionKind::gvk("migration.k8s.io", "v1alpha1", "StorageVersionMigration");
    ApiResource::from_gvk_with_plural(&kind, "storageversionmigrations")
}

fn state(found: Option<&DynamicObject>, key: &str, now: Timestamp) -> State {
    let Some(found) = found else {
        return State::Absent;
    };
    match found.annotations().get(WRITE_KEY) {
        None => return State::Failed(foreign(&found.name_any())),
        Some(other) if other != key => return State::Outdated,
        Some(_) => {}
    }
    if condition(found, "Succeeded").is_some() {
        return State::Succeeded;
    }
    let Some(failed) = condition(found, "Failed") else {
        return State::Running;
    };
    if failed_at(found, failed).is_some_and(|at| now.duration_since(at) > RETRY_AFTER) {
        return State::Outdated;
    }
    let message = failed["message"].as_str().filter(|it| !it.is_empty());
    State::Failed(message.unwrap_or("no reason is reported").to_owned())
}

fn foreign(name: &str) -> String {
    format!("StorageVersionMigration {name} was not created by this operator: delete it")
}

/// A condition, if it is true.
fn condition<'a>(found: &'a DynamicObject, type_: &str) -> Option<&'a Value> {
    let conditions = found.data["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.find(|it| it["type"] == type_ && it["status"] == "True")
}

fn failed_at(found: &DynamicObject, failed: &Value) -> Option<Timestamp> {
    let updated = failed["lastUpdateTime"].as_str();
    let updated = updated.and_then(|text| text.parse().ok());
    updated.or_else(|| found.creation_timestamp().map(|time| time.0))
}

fn progress(states: &[(&str, State)]) -> Progress {
    let failed: Vec<_> = states
        .iter()
        .filter_map(|(resource, state)| match state {
            State::Failed(why) => Some(format!("{resource}: {why}")),
            State::Absent | State::Outdated | State::Running | State::Succeeded => None,
        })
        .collect();
    if !failed.is_empty() {
        return Progress::Failed(failed.join("; "));
    }
    let running = states.iter().filter(|(_, it)| *it != State::Succeeded);
    let running: Vec<_> = running.map(|(resource, _)| *resource).collect();
    if running.is_empty() {
        return Progress::Done;
    }
    let done = states.len() - running.len();
    let all = states.len();
    Progress::Running(format!("{} ({done} of {all} done)", running.join(", ")))
}

/// Creates a migration. The resource is rewritten from the start, so an earlier one is deleted.
async fn replace(
    api: &Api<DynamicObject>,
    known: Option<&DynamicObject>,
    desired: &DynamicObject,
) -> Result<(), Error> {
    let name = desired.name_any();
    if let Some(known) = known {
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: known.uid(),
                resource_version: known.resource_version(),
            }),
            ..DeleteParams::default()
        };
        match api.delete(&name, &params).await {
            // The next pass reads what has changed.
            Err(error) if is_conflict(&error) => return Ok(()),
            Err(error) if is_missing(&error) => {}
            deleted => {
                let what = format!("delete StorageVersionMigration {name}");
                drop(deleted.map_err(Error::client(what))?);
            }
        }
    }
    let params = PostParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PostParams::default()
    };
    match api.create(&params, desired).await {
        // It is still being deleted, or another request has created it.
        Err(error) if is_conflict(&error) => Ok(()),
        created => {
            created.map_err(Error::client(format!(
                "create StorageVersionMigration {name}"
            )))?;
            tracing::info!(name, "Created StorageVersionMigration");
            Ok(())
        }
    }
}

/// The preferred version of a resource, if it is served.
async fn version(guest: &kube::Client, resource: Resource<'_>) -> Result<Option<String>, Error> {
    let Resource { group, name } = resource;
    if group.is_empty() {
        return Ok(Some("v1".to_owned()));
    }
    let groups = guest.list_api_groups().await;
    let groups = groups.map_err(Error::client("list API groups"))?;
    let served = groups.groups.into_iter().find(|it| it.name == group);
    let Some(preferred) = served.and_then(|it| it.preferred_version) else {
        return Ok(None);
    };
    let version = preferred.group_version;
    let resources = guest.list_api_group_resources(&version).await;
    let resources = resources.map_err(Error::client(format!("list resources of {version}")))?;
    let is_served = resources.resources.iter().any(|it| it.name == name);
    Ok(is_served.then_some(preferred.version))
}

// === impl Resource ===

impl<'a> Resource<'a> {
    fn parse(text: &'a str) -> Self {
        let (name, group) = text.split_once('.').unwrap_or((text, ""));
        Self { group, name }
    }

    /// Name of its migration.
    fn migration(self) -> String {
        let group = if self.group.is_empty() {
            "core"
        } else {
            self.group
        };
        format!("encryption-migration-{group}-{}", self.name)
    }

    fn object(self, version: &str, key: &str) -> DynamicObject {
        let mut object = DynamicObject::new(&self.migration(), &kind());
        let annotations = object.annotations_mut();
        annotations.insert(WRITE_KEY.to_owned(), key.to_owned());
        object.data = json!({ "spec": { "resource": {
            "group": self.group, "version": version, "resource": self.name,
        } } });
        object
    }
}

#[cfg(test)]
mod tests;
