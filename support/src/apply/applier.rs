//! Server-side apply for controllers: an object that is up to date is not written.

use std::fmt::{self, Debug};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::PartialObjectMeta;
use kube::{Api, Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::difference::{Part, is_settled, without_nulls};
use crate::reconcile::{Retry, client_reason, is_conflict, is_missing};

/// Attempts for an object that others write to at the same time.
const ATTEMPTS: usize = 5;

/// Applies objects as one field manager.
///
/// Each write has the uid and the resource version of the object that was read as precondition, if the object exists.
/// After a conflict the object is read and compared again. Fields that other managers own are taken over.
#[derive(Clone)]
pub struct Applier {
    client: kube::Client,
    manager: String,
}

/// An object, and whether the apply changed it.
#[derive(Debug, Clone)]
pub struct Applied<K> {
    /// The object on the API server.
    pub object: K,
    /// What the apply did.
    pub change: Change,
}

/// What an apply did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Nothing: the object was up to date.
    None,
    /// The object was created.
    Created,
    /// The object was updated.
    Updated,
}

/// The state of a deletion.
#[derive(Debug, Clone)]
pub enum Deletion {
    /// The object does not exist.
    Gone,
    /// The object has finalizers.
    Waiting(Box<ObjectMeta>),
}

/// A failed operation and its object.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The object could not be read.
    #[error("failed to get {object}")]
    Read {
        /// Kind, namespace and name.
        object: String,
        /// The cause.
        source: kube::Error,
    },
    /// The API server rejected the object.
    #[error("failed to apply {object}")]
    Apply {
        /// Kind, namespace and name.
        object: String,
        /// The cause.
        source: kube::Error,
    },
    /// The object could not be deleted.
    #[error("failed to delete {object}")]
    Delete {
        /// Kind, namespace and name.
        object: String,
        /// The cause.
        source: kube::Error,
    },
    /// The object, or the answer of the API server, does not match the type.
    #[error("failed to convert {object}")]
    Form {
        /// Kind, namespace and name.
        object: String,
        /// The cause.
        source: serde_json::Error,
    },
}

// === impl Change ===

impl Change {
    /// Whether the object was written.
    pub fn is_written(self) -> bool {
        self != Self::None
    }
}

// === impl Deletion ===

impl Deletion {
    /// Whether the object does not exist.
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Gone)
    }
}

// === impl Error ===

impl Error {
    /// The reason in metrics and Events.
    pub fn reason(&self) -> &'static str {
        self.client().map_or("UnexpectedAnswer", client_reason)
    }

    /// When to try again.
    pub fn retry(&self) -> Retry {
        match self.client() {
            Some(error) if is_conflict(error) => Retry::AtOnce,
            Some(_) | None => Retry::Backoff,
        }
    }

    /// The error of the client, if it was one.
    pub fn client(&self) -> Option<&kube::Error> {
        match self {
            Self::Read { source, .. }
            | Self::Apply { source, .. }
            | Self::Delete { source, .. } => Some(source),
            Self::Form { .. } => None,
        }
    }
}

// === impl Applier ===

impl Debug for Applier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Applier")
            .field("manager", &self.manager)
            .finish_non_exhaustive()
    }
}

impl Applier {
    /// Writes with this client, which should be [fenced](crate::fence), as this manager.
    pub fn new(client: kube::Client, manager: impl Into<String>) -> Self {
        let manager = manager.into();
        Self { client, manager }
    }

    /// The client.
    pub fn client(&self) -> &kube::Client {
        &self.client
    }

    /// The field manager.
    pub fn manager(&self) -> &str {
        &self.manager
    }

    /// Applies an object without its status.
    pub async fn apply<K>(&self, wanted: &K) -> Result<Applied<K>, Error>
    where
        K: Resource<DynamicType = ()> + Serialize + DeserializeOwned,
    {
        let resource = ApiResource::erase::<K>(&());
        let object = name_of(&resource, wanted.meta());
        let form = |source| Error::Form {
            object: object.clone(),
            source,
        };
        let wanted = serde_json::to_value(wanted).map_err(form)?;
        let applied = self.apply_value(&resource, wanted).await?;
        let found = serde_json::to_value(&applied.object).map_err(form)?;
        Ok(Applied {
            object: serde_json::from_value(found).map_err(form)?,
            change: applied.change,
        })
    }

    /// Applies an object of a kind without a Rust type.
    pub async fn apply_dynamic(
        &self,
        resource: &ApiResource,
        wanted: &DynamicObject,
    ) -> Result<Applied<DynamicObject>, Error> {
        let value = serde_json::to_value(wanted).map_err(|source| Error::Form {
            object: name_of(resource, &wanted.metadata),
            source,
        })?;
        self.apply_value(resource, value).await
    }

    /// Applies an object in JSON; `metadata` has its name and its namespace, if it is namespaced.
    pub async fn apply_value(
        &self,
        resource: &ApiResource,
        mut wanted: Value,
    ) -> Result<Applied<DynamicObject>, Error> {
        if let Some(fields) = wanted.as_object_mut() {
            fields.remove("status");
        }
        self.write(Part::Main, resource, wanted).await
    }

    /// Applies the status of an object. `wanted` has `metadata` with name and namespace, and `status`. The object must
    /// exist.
    pub async fn apply_status(
        &self,
        resource: &ApiResource,
        wanted: Value,
    ) -> Result<Applied<DynamicObject>, Error> {
        let wanted = json!({ "metadata": wanted["metadata"], "status": wanted["status"] });
        self.write(Part::Status, resource, wanted).await
    }

    /// Deletes an object, unless it is being deleted already.
    pub async fn delete(
        &self,
        resource: &ApiResource,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Deletion, Error> {
        let api: Api<DynamicObject> = self.api(resource, namespace);
        let object = format!("{} {}", resource.kind, place(namespace, name));
        let found = match api.get_metadata_opt(name).await {
            Ok(found) => found,
            // Without the kind there is no object of it.
            Err(error) if is_missing(&error) => None,
            Err(source) => return Err(Error::Read { object, source }),
        };
        let Some(PartialObjectMeta { metadata, .. }) = found else {
            return Ok(Deletion::Gone);
        };
        if metadata.deletion_timestamp.is_none() {
            match super::delete(&api, &metadata).await {
                Ok(()) => {}
                Err(error) if is_missing(&error) => return Ok(Deletion::Gone),
                Err(source) => return Err(Error::Delete { object, source }),
            }
        }
        Ok(Deletion::Waiting(Box::new(metadata)))
    }

    async fn write(
        &self,
        part: Part,
        resource: &ApiResource,
        wanted: Value,
    ) -> Result<Applied<DynamicObject>, Error> {
        let mut wanted = match part {
            Part::Main => without_nulls(wanted),
            // In a status, null is a value: a time that is not set.
            Part::Status => wanted,
        };
        wanted["apiVersion"] = json!(resource.api_version);
        wanted["kind"] = json!(resource.kind);
        let name = text(&wanted, "/metadata/name");
        let namespace = Some(text(&wanted, "/metadata/namespace")).filter(|it| !it.is_empty());
        let object = format!("{} {}", resource.kind, place(namespace.as_deref(), &name));
        let api = self.api(resource, namespace.as_deref());
        let mut attempts = ATTEMPTS;
        loop {
            let live = api.get_opt(&name).await.map_err(|source| Error::Read {
                object: object.clone(),
                source,
            })?;
            attempts -= 1;
            match self.write_once(part, &api, &name, &wanted, live).await {
                Err(error) if is_conflict(&error) && attempts > 0 => {}
                Err(source) => return Err(Error::Apply { object, source }),
                Ok(applied) => return Ok(applied),
            }
        }
    }

    async fn write_once(
        &self,
        part: Part,
        api: &Api<DynamicObject>,
        name: &str,
        wanted: &Value,
        live: Option<DynamicObject>,
    ) -> kube::Result<Applied<DynamicObject>> {
        let mut patch = wanted.clone();
        let mut change = Change::Created;
        if let Some(live) = live {
            let value = serde_json::to_value(&live).map_err(kube::Error::SerdeError)?;
            if is_settled(part, wanted, &value, &live.metadata, &self.manager) {
                let change = Change::None;
                return Ok(Applied {
                    object: live,
                    change,
                });
            }
            patch["metadata"]["uid"] = json!(live.uid());
            patch["metadata"]["resourceVersion"] = json!(live.resource_version());
            change = Change::Updated;
        }
        let params = PatchParams::apply(&self.manager).force();
        let object = match part {
            Part::Main => api.patch(name, &params, &Patch::Apply(&patch)).await?,
            Part::Status => {
                api.patch_status(name, &params, &Patch::Apply(&patch))
                    .await?
            }
        };
        Ok(Applied { object, change })
    }

    fn api(&self, resource: &ApiResource, namespace: Option<&str>) -> Api<DynamicObject> {
        let client = self.client.clone();
        match namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, resource),
            None => Api::all_with(client, resource),
        }
    }
}

/// The controller reference to `owner`.
pub fn owner<K: Resource<DynamicType = ()>>(owner: &K) -> Option<OwnerReference> {
    owner.controller_owner_ref(&())
}

/// Adds an owner reference. Another reference to the same owner is replaced.
pub fn own(object: &mut ObjectMeta, owner: OwnerReference) {
    let references = object.owner_references.get_or_insert_default();
    references.retain(|reference| reference.uid != owner.uid);
    references.push(owner);
}

fn text(value: &Value, pointer: &str) -> String {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_default().to_owned()
}

fn name_of(resource: &ApiResource, metadata: &ObjectMeta) -> String {
    let name = metadata.name.as_deref().unwrap_or_default();
    let place = place(metadata.namespace.as_deref(), name);
    format!("{} {place}", resource.kind)
}

fn place(namespace: Option<&str>, name: &str) -> String {
    match namespace {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;
    use crate::testing::{Answer, Expect, Scenario};

    const PATH: &str = "/api/v1/namespaces/a/configmaps/b";

    fn wanted() -> ConfigMap {
        ConfigMap {
            metadata: ObjectMeta {
                namespace: Some("a".to_owned()),
                name: Some("b".to_owned()),
                ..ObjectMeta::default()
            },
            data: Some(BTreeMap::from([("k".to_owned(), "v".to_owned())])),
            ..ConfigMap::default()
        }
    }

    fn live(value: &str, version: &str) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "namespace": "a",
                "name": "b",
                "uid": "u",
                "resourceVersion": version,
                "managedFields": [{
                    "manager": "m",
                    "operation": "Apply",
                    "apiVersion": "v1",
                    "fieldsType": "FieldsV1",
                    "fieldsV1": { "f:data": { "f:k": {} } },
                }],
            },
            "data": { "k": value },
        })
    }

    fn get(value: &str, version: &str) -> Expect {
        Expect::get(PATH).answer(Answer::ok(&live(value, version)))
    }

    /// Check O06.
    #[tokio::test]
    async fn an_object_that_is_up_to_date_is_not_written() {
        let scenario = Scenario::new([get("v", "1")]);
        let applier = Applier::new(scenario.client(), "m");
        let done = applier.apply(&wanted()).await.unwrap();
        assert_eq!(done.change, Change::None);
        assert_eq!(done.object.metadata.uid.as_deref(), Some("u"));
        scenario.finish();
    }

    #[tokio::test]
    async fn a_conflict_is_resolved_by_reading_and_applying_again() {
        let decided_on = |version: &str| {
            Expect::patch(&format!("{PATH}?force=true&fieldManager=m")).body(json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": { "uid": "u", "resourceVersion": version },
                "data": { "k": "v" },
            }))
        };
        let scenario = Scenario::new([
            get("x", "1"),
            decided_on("1").answer(Answer::error(409, "Conflict")),
            get("y", "2"),
            decided_on("2").answer(Answer::ok(&live("v", "3"))),
        ]);
        let applier = Applier::new(scenario.client(), "m");
        let done = applier.apply(&wanted()).await.unwrap();
        assert_eq!(done.change, Change::Updated);
        scenario.finish();
    }

    #[tokio::test]
    async fn an_object_that_does_not_exist_is_created() {
        let scenario = Scenario::new([
            Expect::get(PATH).answer(Answer::error(404, "NotFound")),
            Expect::patch(PATH).answer(Answer::ok(&live("v", "1"))),
        ]);
        let applier = Applier::new(scenario.client(), "m");
        let done = applier.apply(&wanted()).await.unwrap();
        assert_eq!(done.change, Change::Created);
        scenario.finish();
    }

    #[tokio::test]
    async fn an_object_is_deleted_once_and_then_waited_for() {
        let resource = ApiResource::erase::<ConfigMap>(&());
        let mut going = live("v", "2");
        going["metadata"]["deletionTimestamp"] = json!("2030-01-31T12:00:00Z");
        going["metadata"]["finalizers"] = json!(["example.com/f"]);
        let scenario = Scenario::new([
            get("v", "1"),
            Expect::delete(PATH)
                .body(json!({ "preconditions": { "uid": "u" } }))
                .answer(Answer::ok(&going)),
            Expect::get(PATH).answer(Answer::ok(&going)),
            Expect::get(PATH).answer(Answer::error(404, "NotFound")),
        ]);
        let applier = Applier::new(scenario.client(), "m");
        let delete = async || applier.delete(&resource, Some("a"), "b").await.unwrap();
        assert!(!delete().await.is_gone());
        let Deletion::Waiting(metadata) = delete().await else {
            unreachable!("the object has a finalizer");
        };
        assert_eq!(
            metadata.finalizers.as_deref(),
            Some(["example.com/f".to_owned()].as_slice())
        );
        assert!(delete().await.is_gone());
        scenario.finish();
    }

    #[tokio::test]
    async fn errors_name_the_object() {
        let scenario = Scenario::new([Expect::get(PATH).answer(Answer::error(403, "Forbidden"))]);
        let applier = Applier::new(scenario.client(), "m");
        let error = applier.apply(&wanted()).await.unwrap_err();
        assert_eq!(error.to_string(), "failed to get ConfigMap a/b");
        assert_eq!(error.reason(), "Forbidden");
    }
}
