//! Applies the objects of components: whole objects, and only those that differ.

use std::collections::HashMap;
use std::fmt;

use k8s_openapi::api::batch::v1::Job;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use serde::Deserialize as _;
use serde_json::{Value, json};
use support::apply::{Applier, Error};

use crate::objects::Objects;
use crate::render::{DESIRED_STATE_HASH, Identity, identity};

/// What was written of an object, and which state of the object that made.
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
    /// The statuses that were written last.
    statuses: HashMap<Key, Value>,
}

/// Group, kind and name.
type Key = (String, String, String);

// === impl ObjectWriter ===

impl ObjectWriter {
    /// A writer of one namespace, under the name of a field manager.
    pub fn new(client: kube::Client, manager: &'static str, namespace: &str) -> Self {
        Self {
            applier: Applier::new(client, manager),
            namespace: namespace.to_owned(),
            written: HashMap::new(),
            statuses: HashMap::new(),
        }
    }

    /// Applies an object, and adds it to the known ones.
    ///
    /// An object that was settled when it was last looked at, and is still the same, is not even read.
    pub async fn apply(&mut self, wanted: &Value, there: &mut Objects) -> Result<(), Error> {
        let which = identity(wanted);
        let live = there.find(&which);
        let key = key(&which);
        let hash = text(
            wanted,
            &format!(
                "/metadata/annotations/{}",
                DESIRED_STATE_HASH.replace('/', "~1")
            ),
        );
        let version = live
            .map(|live| text(live, "/metadata/resourceVersion"))
            .unwrap_or_default();
        let settled = Written {
            hash: hash.clone(),
            resource_version: version,
        };
        if live.is_some() && self.written.get(&key) == Some(&settled) {
            return Ok(());
        }
        if let (Some(live), "Job") = (live, which.kind.as_str())
            && !self.is_new_job(live, &hash).await?
        {
            return Ok(());
        }
        let resource = resource(&which);
        let applied = self.applier.apply_value(&resource, wanted.clone()).await?;
        if applied.change.is_written() {
            tracing::info!(kind = which.kind, name = which.name, change = ?applied.change, "Applied");
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
        there.insert(value(&resource, &applied.object));
        Ok(())
    }

    /// A Job cannot be changed. One that failed, or that should be another one, goes, and is created again when it has gone.
    async fn is_new_job(&self, live: &Value, hash: &str) -> Result<bool, Error> {
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
    pub async fn delete(&self, which: &Identity) -> Result<(), Error> {
        let deleted = self
            .applier
            .delete(&resource(which), Some(&self.namespace), &which.name)
            .await?;
        if !deleted.is_gone() {
            tracing::info!(kind = which.kind, name = which.name, "Deleted");
        }
        Ok(())
    }

    /// Applies the status of an object, unless it was written last and the object still has it.
    pub async fn status(&mut self, desired: Value, live: &Value) -> Result<(), Error> {
        let which = identity(&desired);
        let key = key(&which);
        let status = &desired["status"];
        if self.statuses.get(&key) == Some(status) && contains(&live["status"], status) {
            return Ok(());
        }
        let status = status.clone();
        self.applier
            .apply_status(&resource(&which), desired)
            .await?;
        self.statuses.insert(key, status);
        Ok(())
    }
}

fn key(which: &Identity) -> Key {
    (
        which.group().to_owned(),
        which.kind.clone(),
        which.name.clone(),
    )
}

/// Whether a value has all that is desired. Others may have added fields, and conditions of other types.
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

/// An object with its kind, which lists leave out.
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

/// The kind of an object.
pub fn resource(which: &Identity) -> ApiResource {
    let (group, version) = which
        .api_version
        .split_once('/')
        .unwrap_or(("", &which.api_version));
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &which.kind))
}

#[cfg(test)]
mod tests {
    use support::testing::{Answer, Expect, Scenario};

    use super::*;

    #[tokio::test]
    async fn a_status_that_has_not_changed_makes_no_request() {
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
        // What another writer has added is left to it.
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
            // What a former process has written is not known.
            writer.status(desired(), &live).await.unwrap();
            writer.status(desired(), seen).await.unwrap();
            scenario.finish();
        }
    }
}
