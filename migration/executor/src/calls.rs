//! Requests about objects, as JSON: one function a verb, each tried again while time may help.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, header};
use kube::{Client, Discovery};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::counts::Tally;
use crate::response::Rejection;
use migration::machine::{Act, Format, Propagation, Subresource, Write};
use migration::object::{ObjectKey, Resource};

/// How long one response may take.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(1);
/// The first wait before a request is tried again; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// Only metadata, for kinds of which the content is not needed.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const JSON: &str = "application/json";
/// How many objects a page of a list has.
const PAGE: usize = 500;

/// How much of an object is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// All of it.
    Whole,
    /// Its metadata.
    Metadata,
}

/// An API server.
#[derive(Clone)]
pub(crate) struct Calls {
    client: Client,
    patience: Duration,
    field_manager: Arc<str>,
    pub(crate) tally: Arc<Tally>,
}

/// One request, which can be sent more than once.
#[derive(Debug, Clone)]
struct Call {
    method: Method,
    path: String,
    accept: &'static str,
    content_type: &'static str,
    body: Vec<u8>,
}

impl std::fmt::Debug for Calls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Calls").finish_non_exhaustive()
    }
}

// === impl Calls ===

impl Calls {
    /// Requests are tried again for as long as `patience` lasts.
    pub(crate) fn new(client: Client, patience: Duration, field_manager: &str) -> Self {
        Self {
            client,
            patience,
            field_manager: field_manager.into(),
            tally: Arc::default(),
        }
    }

    /// All kinds that the server has.
    pub(crate) async fn discover(&self) -> Result<Discovery, Rejection> {
        let start = Instant::now();
        let mut wait = FIRST_WAIT;
        loop {
            match Discovery::new(self.client.clone()).run_aggregated().await {
                Ok(discovery) => return Ok(discovery),
                Err(error) => wait = self.pause(Rejection::of(&error), wait, start).await?,
            }
        }
    }

    /// All objects of a kind in a namespace; of kinds without namespaces, in the cluster.
    pub(crate) async fn list(
        &self,
        resource: &Resource,
        namespace: &str,
        depth: Depth,
    ) -> Result<Vec<Value>, Rejection> {
        let accept = match depth {
            Depth::Whole => JSON,
            Depth::Metadata => METADATA_LIST,
        };
        let collection = collection(resource, namespace);
        let mut items = Vec::new();
        let mut page = String::new();
        loop {
            let path = format!("{collection}?limit={PAGE}{page}");
            let mut list = self.patiently(&Call::get(path, accept)).await?;
            if let Value::Array(some) = list["items"].take() {
                items.extend(some);
            }
            match list["metadata"]["continue"].as_str() {
                Some(token) if !token.is_empty() => page = format!("&continue={token}"),
                _ => return Ok(items),
            }
        }
    }

    /// One object, if it is there.
    pub(crate) async fn get(
        &self,
        resource: &Resource,
        key: &ObjectKey,
        depth: Depth,
    ) -> Result<Option<Value>, Rejection> {
        let accept = match depth {
            Depth::Whole => JSON,
            Depth::Metadata => METADATA,
        };
        self.tally.read();
        match self
            .patiently(&Call::get(named(resource, key), accept))
            .await
        {
            Ok(found) => Ok(Some(found)),
            Err(Rejection::Gone) => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    /// Writes; gives the object as it is now, or nothing for a deletion that has begun.
    ///
    /// Failures are retried if they are temporary. An attempt with a lost response may have succeeded: the next one then
    /// finds a conflict, and the caller reads the object.
    pub(crate) async fn write(
        &self,
        write: &Write,
        depth: Depth,
    ) -> Result<Option<Value>, Rejection> {
        let call = self.call_of(write, depth);
        let start = Instant::now();
        let mut wait = FIRST_WAIT;
        loop {
            self.tally.tried();
            let fault = match self.once(&call).await {
                Ok(response) => {
                    self.tally.written();
                    let is_object = matches!(write.act, Act::Create(_) | Act::Patch { .. });
                    return Ok(is_object.then_some(response));
                }
                Err(fault) => fault,
            };
            wait = self.pause(fault, wait, start).await?;
        }
    }

    /// Replaces an object, once: for the journal, where the conflict with another writer must not be lost in a second try.
    pub(crate) async fn replace(&self, path: &str, body: &Value) -> Result<Value, Rejection> {
        self.patiently(&Call::with(Method::PUT, path.to_owned(), body))
            .await
    }

    /// Creates an object.
    pub(crate) async fn create(&self, path: &str, body: &Value) -> Result<Value, Rejection> {
        self.patiently(&Call::with(Method::POST, path.to_owned(), body))
            .await
    }

    /// Reads a path, if there is anything.
    pub(crate) async fn find(&self, path: &str) -> Result<Option<Value>, Rejection> {
        match self.patiently(&Call::get(path.to_owned(), JSON)).await {
            Ok(found) => Ok(Some(found)),
            Err(Rejection::Gone) => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    fn call_of(&self, write: &Write, depth: Depth) -> Call {
        let manager = &self.field_manager;
        let mut call = match &write.act {
            Act::Create(body) => {
                let collection = collection(&write.resource, &write.key.namespace);
                let path = format!("{collection}?fieldManager={manager}");
                Call::with(Method::POST, path, body)
            }
            Act::Patch {
                format,
                subresource,
                body,
            } => {
                let named = named(&write.resource, &write.key);
                let below = match subresource {
                    Some(Subresource::Status) => "/status",
                    None => "",
                };
                let path = format!("{named}{below}?fieldManager={manager}");
                let mut call = Call::with(Method::PATCH, path, body);
                call.content_type = match format {
                    Format::Merge => "application/merge-patch+json",
                    Format::Json => "application/json-patch+json",
                };
                call
            }
            Act::Delete {
                uid,
                resource_version,
                propagation,
            } => {
                let propagation = match propagation {
                    Propagation::Orphan => "Orphan",
                    Propagation::Background => "Background",
                };
                let options = json!({
                    "apiVersion": "v1",
                    "kind": "DeleteOptions",
                    "propagationPolicy": propagation,
                    "preconditions": { "uid": uid, "resourceVersion": resource_version },
                });
                Call::with(Method::DELETE, named(&write.resource, &write.key), &options)
            }
        };
        if depth == Depth::Metadata && call.method != Method::DELETE {
            call.accept = METADATA;
        }
        call
    }

    async fn patiently(&self, call: &Call) -> Result<Value, Rejection> {
        let start = Instant::now();
        let mut wait = FIRST_WAIT;
        loop {
            match self.once(call).await {
                Ok(response) => return Ok(response),
                Err(fault) => wait = self.pause(fault, wait, start).await?,
            }
        }
    }

    /// Waits before the next try, if there is to be one; gives the wait after it.
    async fn pause(
        &self,
        fault: Rejection,
        wait: Duration,
        start: Instant,
    ) -> Result<Duration, Rejection> {
        let Rejection::Later { after, .. } = &fault else {
            return Err(fault);
        };
        let wait = after.unwrap_or(wait);
        if start.elapsed() + wait > self.patience {
            return Err(fault);
        }
        sleep(wait).await;
        Ok((wait * 2).min(LONGEST_WAIT))
    }

    async fn once(&self, call: &Call) -> Result<Value, Rejection> {
        let request = call.request().map_err(|message| Rejection::Refused {
            reason: migration::failure::Reason::ResourceConversionFailed,
            message,
        })?;
        match timeout(RESPONSE_TIMEOUT, self.client.request::<Value>(request)).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(Rejection::of(&error)),
            Err(_) => Err(Rejection::Later {
                message: format!("no response within {} s", RESPONSE_TIMEOUT.as_secs()),
                after: None,
            }),
        }
    }
}

// === impl Call ===

impl Call {
    fn get(path: String, accept: &'static str) -> Self {
        Self {
            method: Method::GET,
            path,
            accept,
            content_type: JSON,
            body: Vec::new(),
        }
    }

    fn with(method: Method, path: String, body: &Value) -> Self {
        Self {
            method,
            path,
            accept: JSON,
            content_type: JSON,
            body: body.to_string().into_bytes(),
        }
    }

    fn request(&self) -> Result<Request<Vec<u8>>, String> {
        Request::builder()
            .method(&self.method)
            .uri(&self.path)
            .header(header::ACCEPT, self.accept)
            .header(header::CONTENT_TYPE, self.content_type)
            .body(self.body.clone())
            .map_err(|error| format!("{} is no path: {error}", self.path))
    }
}

/// The path of all objects of a kind in a namespace.
fn collection(resource: &Resource, namespace: &str) -> String {
    let root = if resource.group.is_empty() {
        format!("/api/{}", resource.version)
    } else {
        format!("/apis/{}/{}", resource.group, resource.version)
    };
    let plural = &resource.plural;
    if resource.namespaced {
        format!("{root}/namespaces/{namespace}/{plural}")
    } else {
        format!("{root}/{plural}")
    }
}

/// The path of one.
fn named(resource: &Resource, key: &ObjectKey) -> String {
    let collection = collection(resource, &key.namespace);
    format!("{collection}/{}", key.name)
}
