//! Applies the objects of components: complete objects, and only those that differ.

use std::collections::HashMap;
use std::fmt;

use k8s_openapi::api::batch::v1::Job;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use serde::Deserialize as _;
use serde_json::{Value, json};
use support::apply::{Applier, Error};

use crate::objects::Objects;
use crate::render::{DESIRED_STATE_HASH, Identity, identity};

/// The last write of an object: the desired state hash and the resulting resource version.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Written {
    hash: String,
    resource_version: String,
}

/// Applies objects of one namespace.
pub struct ObjectWriter {
    applier: Applier,
    namespace: String,
    written: HashMap<Key, Written>,
    /// The last written statuses.
    statuses: HashMap<Key, Value>,
}

/// Group, kind and name.
type Key = (String, String, String);

// === impl ObjectWriter ===

impl ObjectWriter {
    /// Creates a writer for a namespace with a field manager.
    pub fn new(client: kube::Client, manager: &'static str, namespace: &str) -> Self {
        Self {
            applier: Applier::new(client, manager),
            namespace: namespace.to_owned(),
            written: HashMap::new(),
            statuses: HashMap::new(),
        }
    }

    /// Applies an object, and adds it to the existing ones.
    ///
    /// An object that has not changed since the last write is neither read nor written.
    pub async fn apply(&mut self, desired: &Value, existing: &mut Objects) -> Result<(), Error> {
        let identity = identity(desired);
        let live = existing.find(&identity);
        let key = key(&identity);
        let hash = text(
            desired,
            &format!(
                "/metadata/annotations/{}",
                DESIRED_STATE_HASH.replace('/', "~1")
            ),
        );
        let version = live
            .map(|live| text(live, "/metadata/resourceVersion"))
            .unwrap_or_default();
        let last_written = Written {
            hash: hash.clone(),
            resource_version: version,
        };
        if live.is_some() && self.written.get(&key) == Some(&last_written) {
            return Ok(());
        }
        if let (Some(live), "Job") = (live, identity.kind.as_str())
            && !self.replace_job(live, &hash).await?
        {
            return Ok(());
        }
        let resource = resource(&identity);
        let applied = self.applier.apply_value(&resource, desired.clone()).await?;
        if applied.change.is_written() {
            tracing::info!(kind = identity.kind, name = identity.name, change = ?applied.change, "Applied");
        }
        let resource_version = applied
            .object
            .metadata
            .resource_version
            .clone()
            .unwrap_or_default();
        self.written.insert(
            key,
            Written {
                hash,
                resource_version,
            },
        );
        existing.insert(value(&resource, &applied.object));
        Ok(())
    }

    /// Jobs are immutable. A Job that failed or differs is deleted, and created again by a later reconcile.
    async fn replace_job(&self, live: &Value, hash: &str) -> Result<bool, Error> {
        let found = text(
            live,
            &format!(
                "/metadata/annotations/{}",
                DESIRED_STATE_HASH.replace('/', "~1")
            ),
        );
        let job = Job::deserialize(live).unwrap_or_default();
        let conditions = job
            .status
            .iter()
            .flat_map(|status| status.conditions.iter().flatten());
        let failed = conditions
            .into_iter()
            .any(|condition| condition.type_ == "Failed" && condition.status == "True");
        if found != hash || failed {
            self.delete(&identity(live)).await?;
        }
        Ok(false)
    }

    /// Deletes an object.
    pub async fn delete(&self, identity: &Identity) -> Result<(), Error> {
        let deleted = self
            .applier
            .delete(&resource(identity), Some(&self.namespace), &identity.name)
            .await?;
        if !deleted.is_gone() {
            tracing::info!(kind = identity.kind, name = identity.name, "Deleted");
        }
        Ok(())
    }

    /// Applies the status of an object, unless the last write was the same and the object still has it.
    pub async fn status(&mut self, desired: Value, live: &Value) -> Result<(), Error> {
        let identity = identity(&desired);
        let key = key(&identity);
        let status = &desired["status"];
        if self.statuses.get(&key) == Some(status) && contains(&live["status"], status) {
            return Ok(());
        }
        let status = status.clone();
        self.applier
            .apply_status(&resource(&identity), desired)
            .await?;
        self.statuses.insert(key, status);
        Ok(())
    }
}

fn key(identity: &Identity) -> Key {
    (
        identity.group().to_owned(),
        identity.kind.clone(),
        identity.name.clone(),
    )
}

/// Whether the live value contains the desired one. Other writers may have added fields and conditions of other types.
fn contains(live: &Value, desired: &Value) -> bool {
    match (live, desired) {
        (Value::Object(live), Value::Object(desired)) => desired
            .iter()
            .all(|(field, desired)| live.get(field).is_some_and(|live| contains(live, desired))),
        (Value::Array(live), Value::Array(desired)) if desired.iter().all(is_condition) => desired
            .iter()
            .all(|desired| live.iter().any(|live| contains(live, desired))),
        (live, desired) => live == desired,
    }
}

fn is_condition(value: &Value) -> bool {
    value["type"].is_string() && value["status"].is_string()
}

impl fmt::Debug for ObjectWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectWriter")
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

/// Returns an object with its API version and kind, which lists omit.
pub fn value(resource: &ApiResource, object: &DynamicObject) -> Value {
    let mut value = json!(object);
    value["apiVersion"] = json!(resource.api_version);
    value["kind"] = json!(resource.kind);
    value
}

fn text(value: &Value, pointer: &str) -> String {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

/// Returns the API resource of an object.
pub fn resource(identity: &Identity) -> ApiResource {
    let (group, version) = identity
        .api_version
        .split_once('/')
        .unwrap_or(("", &identity.api_version));
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &identity.kind))
}

#[cfg(test)]
mod tests {
    use support::testing::{Answer, Expect, Scenario};

    use super::*;

    #[tokio::test]
    async fn unchanged_status_makes_no_request() {
        let object = |status: Value| {
            json!({
                "apiVersion": "hypershift.openshift.io/v1beta1", "kind": "HostedControlPlane",
                "metadata": { "name": "a", "namespace": "clusters-a" }, "status": status,
            })
        };
        let condition = |type_: &str, status: &str| json!({ "type": type_, "status": status });
        let desired = || {
            let conditions = [condition("Available", "True")];
            object(json!({ "ready": true, "conditions": conditions }))
        };
        let mut live = desired();
        // Fields of another writer are ignored.
        live["status"]["conditions"] = json!([
            condition("Degraded", "False"),
            condition("Available", "True")
        ]);
        live["status"]["version"] = json!({});
        let mut lost = live.clone();
        lost["status"]["conditions"] = json!([condition("Available", "False")]);
        let group = "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters-a";
        let path = format!("{group}/hostedcontrolplanes/a");
        let write = || {
            let written = Expect::patch(&format!("{path}/status")).answer(Answer::ok(&live));
            [Expect::get(&path).answer(Answer::ok(&lost)), written]
        };
        for (seen, is_written) in [(&live, false), (&lost, true)] {
            let again = if is_written { Some(write()) } else { None };
            let expected = [write()].into_iter().chain(again).flatten();
            let scenario = Scenario::new(expected);
            let mut writer = ObjectWriter::new(scenario.client(), "test", "clusters-a");
            // A new process does not know earlier writes.
            writer.status(desired(), &live).await.unwrap();
            writer.status(desired(), seen).await.unwrap();
            scenario.finish();
        }
    }
}
