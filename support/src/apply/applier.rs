//! Server-side apply for a controller that repeats itself: it writes when something differs, and only then.

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

/// How often an object is looked at anew when others write to it meanwhile.
const ATTEMPTS: usize = 5;

/// Applies objects as one field manager.
///
/// Each write carries the uid and the resource version of the object that it was decided on, if there was one. When
/// somebody else has written in between, it is decided anew. Fields that others hold are taken from them.
#[derive(Clone)]
pub struct Applier {
    client: kube::Client,
    manager: String,
}

/// An object as it is now, and what an apply did to it.
#[derive(Debug, Clone)]
pub struct Applied<K> {
    /// The object as the API server has it.
    pub object: K,
    /// What was done.
    pub change: Change,
}

/// What an apply did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Nothing: all was as it should be.
    None,
    /// The object is new.
    Created,
    /// The object was changed.
    Updated,
}

/// How far a deletion is.
#[derive(Debug, Clone)]
pub enum Deletion {
    /// The object is not there.
    Gone,
    /// The object waits for its finalizers to be removed.
    Waiting(Box<ObjectMeta>),
}

/// What was to be done, and with which object.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The object cannot be read.
    #[error("cannot read {object}")]
    Read {
        /// Kind and name.
        object: String,
        /// Why.
        source: kube::Error,
    },
    /// The API server did not take the object.
    #[error("cannot apply {object}")]
    Apply {
        /// Kind and name.
        object: String,
        /// Why.
        source: kube::Error,
    },
    /// The object cannot be deleted.
    #[error("cannot delete {object}")]
    Delete {
        /// Kind and name.
        object: String,
        /// Why.
        source: kube::Error,
    },
    /// The object, or what came back, is not of its kind.
    #[error("{object} has no form that both sides understand")]
    Form {
        /// Kind and name.
        object: String,
        /// Why.
        source: serde_json::Error,
    },
}

// === impl Change ===

impl Change {
    /// Whether anything was written.
    pub fn is_written(self) -> bool {
        self != Self::None
    }
}

// === impl Deletion ===

impl Deletion {
    /// Whether the object is not there.
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Gone)
    }
}

// === impl Error ===

impl Error {
    /// A word of a closed set.
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

    /// What the client said.
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
    /// Writes with this client, which should be a [fenced](crate::fence) one, as this manager.
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

    /// Has an object be as it is wanted. Its status is left alone.
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

    /// Has an object of a kind without a Rust type be as it is wanted.
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

    /// Has an object be as this JSON has it; `metadata` holds its name, and its namespace if it is in one.
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

    /// Has an object's status be as it is wanted. `wanted` holds `metadata` with the name and the namespace, and
    /// `status`. The object must be there.
    pub async fn apply_status(
        &self,
        resource: &ApiResource,
        wanted: Value,
    ) -> Result<Applied<DynamicObject>, Error> {
        let wanted = json!({ "metadata": wanted["metadata"], "status": wanted["status"] });
        self.write(Part::Status, resource, wanted).await
    }

    /// Sees to it that an object goes: deletes it if nobody has yet, and only if it is still the one that was read.
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
            // Where the kind is not, its objects are not.
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
            // In a status, null is a value: a time that has not come.
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

/// The reference by which an object says that it goes with `owner`, and that this controller looks after it.
pub fn owner<K: Resource<DynamicType = ()>>(owner: &K) -> Option<OwnerReference> {
    owner.controller_owner_ref(&())
}

/// Has `object` go with the owner. Another reference to the same owner is replaced.
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

    #[tokio::test]
    async fn o06_what_is_as_it_should_be_is_not_written() {
        let scenario = Scenario::new([get("v", "1")]);
        let applier = Applier::new(scenario.client(), "m");
        let done = applier.apply(&wanted()).await.unwrap();
        assert_eq!(done.change, Change::None);
        assert_eq!(done.object.metadata.uid.as_deref(), Some("u"));
        scenario.finish();
    }

    #[tokio::test]
    async fn a_write_says_what_it_was_decided_on_and_is_decided_anew_after_a_conflict() {
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
    async fn an_object_that_is_not_there_is_made() {
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
    async fn a_deletion_is_asked_for_once_and_then_waited_for() {
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
            unreachable!("the object is there");
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
        assert_eq!(error.to_string(), "cannot read ConfigMap a/b");
        assert_eq!(error.reason(), "Forbidden");
    }
}
