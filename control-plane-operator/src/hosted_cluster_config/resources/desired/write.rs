//! Writes objects that differ from the desired ones.
//!
//! Each write has the resource version of the live object as precondition, or the uid for a deletion. After a conflict the
//! object is read and compared again.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use support::apply;
use support::reconcile::{is_conflict, is_missing};

use super::object::{Key, Object};
use super::plan::{Write, plan};

/// Attempts for an object that others write at the same time.
const ATTEMPTS: usize = 5;

/// Writes objects of the hosted cluster.
pub struct Writer {
    client: kube::Client,
    manager: &'static str,
}

/// Why an object was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The hosted cluster does not serve the kind: its definition comes with the release.
    #[error("the hosted cluster does not serve the kind of {0}")]
    NotServed(String),
    /// The namespace does not exist.
    #[error("the namespace of {0} does not exist")]
    NoNamespace(String),
    /// A request failed.
    #[error("failed to {verb} {object}")]
    Client {
        /// The operation.
        verb: &'static str,
        /// Its object.
        object: String,
        /// The cause.
        source: kube::Error,
    },
    /// An object is not one of Kubernetes.
    #[error("failed to convert {object}")]
    Form {
        /// The object.
        object: String,
        /// The cause.
        source: serde_json::Error,
    },
}

// === impl Writer ===

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("manager", &self.manager)
            .finish_non_exhaustive()
    }
}

impl Writer {
    /// Writes with this client as this field manager.
    pub fn new(client: kube::Client, manager: &'static str) -> Self {
        Self { client, manager }
    }

    /// Reads an object. There is none of a kind that is not served.
    pub async fn read(&self, key: &Key) -> Result<Option<Value>, WriteError> {
        let found = self.api(key).get_opt(&key.name).await;
        match found.map_err(failed("get", key))? {
            None => Ok(None),
            Some(found) => to_value(key, found).map(Some),
        }
    }

    /// Writes what differs from the live object, and returns the object as it is then.
    pub async fn write(
        &self,
        object: &Object,
        live: Option<&Value>,
    ) -> Result<Option<Value>, WriteError> {
        let mut live = live.cloned();
        let mut attempts = ATTEMPTS;
        loop {
            attempts -= 1;
            match self.write_once(object, live).await {
                Err(error) if error.is_outdated() && attempts > 0 => {
                    live = self.read(&object.key()).await?;
                }
                done => return done,
            }
        }
    }

    async fn write_once(
        &self,
        object: &Object,
        live: Option<Value>,
    ) -> Result<Option<Value>, WriteError> {
        let key = object.key();
        let mut current = live;
        for write in plan(object, current.as_ref()) {
            tracing::info!(object = %key, operation = write.verb(), "Writing to the hosted cluster");
            current = match write {
                Write::Create(value) => Some(self.create(&key, value).await?),
                Write::Patch(patch) => Some(self.patch(&key, current.as_ref(), patch, None).await?),
                Write::PatchStatus(patch) => {
                    let status = Some("status");
                    Some(self.patch(&key, current.as_ref(), patch, status).await?)
                }
                Write::Delete => {
                    self.delete(&key, current.as_ref()).await?;
                    None
                }
            };
        }
        Ok(current)
    }

    async fn create(&self, key: &Key, value: Value) -> Result<Value, WriteError> {
        let params = PostParams {
            field_manager: Some(self.manager.to_owned()),
            ..PostParams::default()
        };
        let object = serde_json::from_value(value).map_err(invalid(key))?;
        let created = self.api(key).create(&params, &object).await;
        let created = created.map_err(|error| match error {
            error if !is_missing(&error) => failed("create", key)(error),
            kube::Error::Api(status) if status.message.starts_with("namespaces ") => {
                WriteError::NoNamespace(key.to_string())
            }
            _ => WriteError::NotServed(key.to_string()),
        })?;
        to_value(key, created)
    }

    async fn patch(
        &self,
        key: &Key,
        live: Option<&Value>,
        mut patch: Value,
        subresource: Option<&str>,
    ) -> Result<Value, WriteError> {
        if let Some(live) = live {
            for field in ["uid", "resourceVersion"] {
                patch["metadata"][field] = live["metadata"][field].clone();
            }
        }
        let params = PatchParams {
            field_manager: Some(self.manager.to_owned()),
            ..PatchParams::default()
        };
        let (api, patch) = (self.api(key), Patch::Merge(&patch));
        let patched = match subresource {
            None => api.patch(&key.name, &params, &patch).await,
            Some(_) => api.patch_status(&key.name, &params, &patch).await,
        };
        to_value(key, patched.map_err(failed("update", key))?)
    }

    async fn delete(&self, key: &Key, live: Option<&Value>) -> Result<(), WriteError> {
        let metadata = live.map_or(&Value::Null, |live| &live["metadata"]);
        let metadata = ObjectMeta {
            name: Some(key.name.clone()),
            uid: metadata["uid"].as_str().map(str::to_owned),
            ..ObjectMeta::default()
        };
        match apply::delete(&self.api(key), &metadata).await {
            Err(error) if !is_missing(&error) => Err(failed("delete", key)(error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn api(&self, key: &Key) -> Api<DynamicObject> {
        let (client, resource) = (self.client.clone(), key.resource());
        if key.namespace.is_empty() {
            return Api::all_with(client, &resource);
        }
        Api::namespaced_with(client, &key.namespace, &resource)
    }
}

// === impl WriteError ===

impl WriteError {
    /// Whether the object is not as it was read.
    fn is_outdated(&self) -> bool {
        match self {
            Self::Client { verb, source, .. } => {
                is_conflict(source) || *verb == "update" && is_missing(source)
            }
            Self::NotServed(_) | Self::NoNamespace(_) | Self::Form { .. } => false,
        }
    }
}

// === impl Write ===

impl Write {
    fn verb(&self) -> &'static str {
        match self {
            Self::Create(_) => "create",
            Self::Patch(_) => "update",
            Self::PatchStatus(_) => "update status",
            Self::Delete => "delete",
        }
    }
}

fn failed(verb: &'static str, key: &Key) -> impl FnOnce(kube::Error) -> WriteError {
    let object = key.to_string();
    move |source| WriteError::Client {
        verb,
        object,
        source,
    }
}

fn invalid(key: &Key) -> impl FnOnce(serde_json::Error) -> WriteError {
    let object = key.to_string();
    move |source| WriteError::Form { object, source }
}

fn to_value(key: &Key, mut object: DynamicObject) -> Result<Value, WriteError> {
    object.metadata.managed_fields = None;
    let mut value = serde_json::to_value(object).map_err(invalid(key))?;
    // Lists omit them.
    value["apiVersion"] = json!(key.api_version);
    value["kind"] = json!(key.kind);
    Ok(value)
}
