//! The cluster, as installing and removing talk to it. Nothing is decided here.

use futures::{StreamExt, TryStreamExt, stream};
use http::{Method, Request, header};
use kube::Client;
use serde_json::{Value, json};

use super::kind::{Kind, text};
use super::object::{FIELD_MANAGER, Id, Object};
use crate::crds::source::cluster::Access;
use crate::crds::source::cluster::connect;

/// Objects a page of a list has at most.
const PAGE: usize = 250;
/// Questions that are asked side by side.
const AT_ONCE: usize = 6;
const JSON: &str = "application/json";
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// The API server, as one user.
#[derive(Clone)]
pub(crate) struct Cluster {
    client: Client,
}

/// How an object is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Apply {
    /// Only ask what would come of it.
    pub(crate) dry_run: bool,
    /// Take fields over from other managers.
    pub(crate) force: bool,
}

/// A permission.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Permission {
    pub(crate) verb: String,
    pub(crate) group: String,
    /// With a slash before a subresource.
    pub(crate) resource: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
}

// === impl Cluster ===

impl Cluster {
    pub(crate) async fn connect(access: &Access) -> anyhow::Result<Self> {
        Ok(Self {
            client: connect(access).await?,
        })
    }

    pub(crate) async fn get(&self, path: &str) -> kube::Result<Value> {
        self.send(Method::GET, path, None).await
    }

    /// Nothing when it does not exist, or its kind does not.
    pub(crate) async fn find(&self, path: &str) -> kube::Result<Option<Value>> {
        match self.get(path).await {
            Ok(found) => Ok(Some(found)),
            Err(error) if status_code(&error) == Some(404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Several, each as [`Self::find`] finds it, in the order of the question.
    pub(crate) async fn find_all(&self, paths: Vec<String>) -> kube::Result<Vec<Option<Value>>> {
        stream::iter(paths)
            .map(|path| async move { self.find(&path).await })
            .buffered(AT_ONCE)
            .try_collect()
            .await
    }

    /// All objects of a collection; none when its kind does not exist.
    pub(crate) async fn list(&self, path: &str, query: &str) -> kube::Result<Vec<Value>> {
        self.pages(path, query, JSON).await
    }

    /// The metadata of all objects of a collection.
    pub(crate) async fn list_metadata(&self, path: &str) -> kube::Result<Vec<Value>> {
        self.pages(path, "", METADATA).await
    }

    async fn pages(&self, path: &str, query: &str, accept: &str) -> kube::Result<Vec<Value>> {
        let mut items = Vec::new();
        let mut next = String::new();
        loop {
            let page = format!("{path}?limit={PAGE}{query}{next}");
            let page = self.send_as(Method::GET, &page, None, accept).await;
            let mut page = match page {
                Err(error) if status_code(&error) == Some(404) => return Ok(items),
                page => page?,
            };
            if let Value::Array(more) = page["items"].take() {
                items.extend(more);
            }
            match text(&page, "/metadata/continue") {
                "" => return Ok(items),
                token => next = format!("&continue={}", escaped(token)),
            }
        }
    }

    /// Whether a collection holds anything.
    pub(crate) async fn holds_any(&self, path: &str) -> kube::Result<bool> {
        let page = self.find(&format!("{path}?limit=1")).await?;
        let items = page.as_ref().and_then(|page| page["items"].as_array());
        Ok(items.is_some_and(|items| !items.is_empty()))
    }

    pub(crate) async fn apply(&self, object: &Object, how: Apply) -> kube::Result<Value> {
        let mut path = format!("{}?fieldManager={FIELD_MANAGER}", object.id.path());
        if how.force {
            path.push_str("&force=true");
        }
        if how.dry_run {
            path.push_str("&dryRun=All");
        }
        self.send(Method::PATCH, &path, Some(&object.body)).await
    }

    /// What would come of each, in the order of the question.
    pub(crate) async fn try_all(
        &self,
        objects: &[Object],
        force: bool,
    ) -> Vec<kube::Result<Value>> {
        let how = Apply {
            dry_run: true,
            force,
        };
        stream::iter(objects)
            .map(|object| self.apply(object, how))
            .buffered(AT_ONCE)
            .collect()
            .await
    }

    /// Deletes an object if it is the very one that was seen; gone already is as good.
    ///
    /// What it owns goes first, so that a Deployment is gone only when its pods are.
    pub(crate) async fn delete(&self, id: &Id, seen: &Value) -> kube::Result<()> {
        let body = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": propagation(id.kind),
            // Not by its version, which moves with the status.
            "preconditions": { "uid": seen["metadata"]["uid"] },
        });
        match self.send(Method::DELETE, &id.path(), Some(&body)).await {
            Err(error) if status_code(&error) != Some(404) => Err(error),
            _ => Ok(()),
        }
    }

    /// Which of the permissions the user does not have.
    pub(crate) async fn denied(
        &self,
        permissions: Vec<Permission>,
    ) -> kube::Result<Vec<Permission>> {
        let answers: Vec<Option<Permission>> = stream::iter(permissions)
            .map(|permission| async move {
                let review = permission.review();
                let answer = self
                    .send(
                        Method::POST,
                        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                        Some(&review),
                    )
                    .await?;
                let allowed = answer["status"]["allowed"] == true;
                Ok::<_, kube::Error>((!allowed).then_some(permission))
            })
            .buffered(AT_ONCE)
            .try_collect()
            .await?;
        Ok(answers.into_iter().flatten().collect())
    }

    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> kube::Result<Value> {
        self.send_as(method, path, body, JSON).await
    }

    async fn send_as(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        accept: &str,
    ) -> kube::Result<Value> {
        let mut request = Request::builder()
            .method(&method)
            .uri(path)
            .header(header::ACCEPT, accept);
        if body.is_some() {
            // JSON is YAML.
            let kind = if method == Method::PATCH {
                "application/apply-patch+yaml"
            } else {
                JSON
            };
            request = request.header(header::CONTENT_TYPE, kind);
        }
        let body = body.map(Value::to_string).unwrap_or_default().into_bytes();
        let request = request.body(body).map_err(kube::Error::HttpError)?;
        self.client.request(request).await
    }
}

// === impl Permission ===

impl Permission {
    fn review(&self) -> Value {
        let (resource, subresource) = match self.resource.split_once('/') {
            Some((resource, subresource)) => (resource, subresource),
            None => (self.resource.as_str(), ""),
        };
        json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": { "resourceAttributes": {
                "verb": self.verb,
                "group": self.group,
                "resource": resource,
                "subresource": subresource,
                "namespace": self.namespace.as_deref().unwrap_or_default(),
                "name": self.name.as_deref().unwrap_or_default(),
            } },
        })
    }
}

impl std::fmt::Display for Permission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        if let Some(name) = &self.name {
            write!(f, "/{name}")?;
        }
        match &self.namespace {
            Some(namespace) => write!(f, " in namespace {namespace}"),
            None => Ok(()),
        }
    }
}

/// The status with which the API server answered.
pub(crate) fn status_code(error: &kube::Error) -> Option<u16> {
    match error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}

/// What the API server said, or why it could not be asked.
pub(crate) fn message(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

fn propagation(kind: Kind) -> &'static str {
    if kind == Kind::Deployment {
        return "Foreground";
    }
    "Background"
}

fn escaped(token: &str) -> String {
    let escape = |byte: u8| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    token.bytes().map(escape).collect()
}
