//! Server-side apply for controllers: an object that is up to date is not written.

use std::fmt::{self, Debug};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::PartialObjectMeta;
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::difference::{is_settled, without_nulls};
use super::memory::{Desired, Known, Memory, Part};
use crate::reconcile::{Retry, client_reason, is_conflict, is_invalid, is_missing};

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
    memory: Option<Arc<dyn Memory>>,
}

/// An object, and whether the apply changed it.
#[derive(Debug, Clone)]
pub struct Applied<K> {
    /// The object on the API server.
    pub object: K,
    /// What the apply did.
    pub change: Change,
    /// The resource version of the object before, if it existed.
    pub previous: Option<String>,
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

    /// Whether the object does not match its type, or its schema in the API server.
    pub fn is_invalid(&self) -> bool {
        self.client().is_none_or(is_invalid)
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
        Self {
            client,
            manager: manager.into(),
            memory: None,
        }
    }

    /// Leaves out requests that the memory makes needless, where objects are [ensured](Self::ensure_value).
    #[must_use]
    pub fn with_memory(self, memory: Arc<dyn Memory>) -> Self {
        let memory = Some(memory);
        Self { memory, ..self }
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
            previous: applied.previous,
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
        self.write(Part::Main, resource, wanted, Known::Nothing)
            .await
    }

    /// Applies an object without its status, unless it is known to be as this has left it. One that is known not to exist
    /// is created without being read.
    pub async fn ensure<K>(&self, wanted: &K) -> Result<Change, Error>
    where
        K: Resource<DynamicType = ()> + Serialize,
    {
        let resource = ApiResource::erase::<K>(&());
        let value = serde_json::to_value(wanted).map_err(|source| Error::Form {
            object: name_of(&resource, wanted.meta()),
            source,
        })?;
        self.ensure_value(&resource, value).await
    }

    /// The same with an object in JSON.
    pub async fn ensure_value(
        &self,
        resource: &ApiResource,
        mut wanted: Value,
    ) -> Result<Change, Error> {
        if let Some(fields) = wanted.as_object_mut() {
            fields.remove("status");
        }
        self.ensure_part(Part::Main, resource, wanted).await
    }

    /// Applies the status of an object, unless it is known to be as this has left it.
    pub async fn ensure_status(
        &self,
        resource: &ApiResource,
        wanted: Value,
    ) -> Result<Change, Error> {
        let wanted = json!({ "metadata": wanted["metadata"], "status": wanted["status"] });
        self.ensure_part(Part::Status, resource, wanted).await
    }

    async fn ensure_part(
        &self,
        part: Part,
        resource: &ApiResource,
        wanted: Value,
    ) -> Result<Change, Error> {
        let Some(memory) = &self.memory else {
            return Ok(self
                .write(part, resource, wanted, Known::Nothing)
                .await?
                .change);
        };
        let desired = wanted.clone();
        let desired = Desired {
            resource,
            object: &desired,
            part,
            manager: &self.manager,
        };
        let known = memory.known(desired);
        if known == Known::Settled {
            return Ok(Change::None);
        }
        let applied = self.write(part, resource, wanted, known).await?;
        let previous = applied.previous.as_deref();
        memory.applied(desired, previous, &applied.object.metadata);
        Ok(applied.change)
    }

    /// Applies the status of an object. `wanted` has `metadata` with name and namespace, and `status`. The object must
    /// exist.
    pub async fn apply_status(
        &self,
        resource: &ApiResource,
        wanted: Value,
    ) -> Result<Applied<DynamicObject>, Error> {
        let wanted = json!({ "metadata": wanted["metadata"], "status": wanted["status"] });
        self.write(Part::Status, resource, wanted, Known::Nothing)
            .await
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

    /// Deletes the objects with these names that are ours, of one kind in one namespace. Of those that the memory knows to
    /// be absent, none is read.
    pub async fn prune(
        &self,
        resource: &ApiResource,
        namespace: &str,
        names: &[&str],
        is_ours: impl Fn(&ObjectMeta) -> bool,
    ) -> Result<(), Error> {
        let memory = self.memory.as_deref();
        let is_absent =
            |name: &str| memory.is_some_and(|it| it.is_absent(resource, namespace, name));
        let names: Vec<&str> = names.iter().copied().filter(|it| !is_absent(it)).collect();
        let api: Api<DynamicObject> = self.api(resource, Some(namespace));
        let object = |name: &str| format!("{} {}", resource.kind, place(Some(namespace), name));
        let found = match metadata_of(&api, &names).await {
            Ok(found) => found,
            // A kind that is not served has no objects.
            Err(error) if is_missing(&error) => Vec::new(),
            Err(source) => {
                let object = object(&names.join(", "));
                return Err(Error::Read { object, source });
            }
        };
        for name in names {
            let mut ours = found.iter().filter(|it| is_ours(it));
            let own = ours.find(|it| it.name.as_deref() == Some(name));
            let Some(own) = own else {
                if let Some(memory) = memory {
                    memory.absent(resource, namespace, name);
                }
                continue;
            };
            if own.deletion_timestamp.is_some() {
                continue;
            }
            match super::delete(&api, own).await {
                Err(source) if !is_missing(&source) => {
                    let object = object(name);
                    return Err(Error::Delete { object, source });
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    async fn write(
        &self,
        part: Part,
        resource: &ApiResource,
        wanted: Value,
        known: Known,
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
        if part == Part::Main && known == Known::Absent {
            match self.write_once(part, &api, &name, &wanted, None).await {
                Err(error) if is_conflict(&error) => {}
                Err(source) => return Err(Error::Apply { object, source }),
                Ok(applied) => return Ok(applied),
            }
        }
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
        let previous = live.as_ref().and_then(ResourceExt::resource_version);
        if let Some(live) = live {
            let value = serde_json::to_value(&live).map_err(kube::Error::SerdeError)?;
            if is_settled(part, wanted, &value, &live.metadata, &self.manager) {
                let change = Change::None;
                return Ok(Applied {
                    object: live,
                    change,
                    previous,
                });
            }
            patch["metadata"]["uid"] = json!(live.uid());
            patch["metadata"]["resourceVersion"] = json!(previous);
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
        Ok(Applied {
            object,
            change,
            previous,
        })
    }

    fn api(&self, resource: &ApiResource, namespace: Option<&str>) -> Api<DynamicObject> {
        let client = self.client.clone();
        match namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, resource),
            None => Api::all_with(client, resource),
        }
    }
}

/// The metadata of objects, in one request. There may be others in it.
async fn metadata_of(api: &Api<DynamicObject>, names: &[&str]) -> kube::Result<Vec<ObjectMeta>> {
    let found = match names {
        [] => Vec::new(),
        [name] => Vec::from_iter(api.get_metadata_opt(name).await?),
        _ => api.list_metadata(&ListParams::default()).await?.items,
    };
    Ok(found.into_iter().map(|it| it.metadata).collect())
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
mod tests;
