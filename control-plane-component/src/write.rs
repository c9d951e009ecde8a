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
    written: HashMap<(String, String, String), Written>,
}

// === impl ObjectWriter ===

impl ObjectWriter {
    /// A writer of one namespace, under the name of a field manager.
    pub fn new(client: kube::Client, manager: &'static str, namespace: &str) -> Self {
        Self {
            applier: Applier::new(client, manager),
            namespace: namespace.to_owned(),
            written: HashMap::new(),
        }
    }

    /// Has an object be as it is wanted, and puts it among those that are there.
    ///
    /// An object that was settled when it was last looked at, and is still the same, is not even read.
    pub async fn apply(&mut self, wanted: &Value, there: &mut Objects) -> Result<(), Error> {
        let which = identity(wanted);
        let live = there.find(&which);
        let key = (
            which.group().to_owned(),
            which.kind.clone(),
            which.name.clone(),
        );
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

    /// A Job cannot be changed. One that failed, or that should be another one, goes, and is made anew when it has gone.
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

    /// Sees to it that an object goes.
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

    /// Has an object's status be as it is wanted, if it is not.
    pub async fn status(&self, wanted: Value) -> Result<(), Error> {
        let resource = resource(&identity(&wanted));
        self.applier.apply_status(&resource, wanted).await.map(drop)
    }
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

fn resource(which: &Identity) -> ApiResource {
    let (group, version) = which
        .api_version
        .split_once('/')
        .unwrap_or(("", &which.api_version));
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &which.kind))
}
