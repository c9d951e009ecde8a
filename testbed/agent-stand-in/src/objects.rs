//! Objects of an API server by their paths, as JSON.

use anyhow::{Context, Result};
use http::{Method, Request, header};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::Value;

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";

/// The objects of an API server.
#[derive(Clone)]
pub(crate) struct Objects {
    client: kube::Client,
}

// === impl Objects ===

impl Objects {
    /// Those that this program is to work on: by the kubeconfig of its environment, or as a pod.
    pub(crate) async fn own() -> Result<Self> {
        let config = kube::Config::infer().await;
        let mut config = config.context("there is no way to the API server")?;
        // Behind the proxy there is no TLS, and in the image there is no authority to trust.
        config.root_cert.get_or_insert_default();
        let client = kube::Client::try_from(config)?;
        Ok(Self { client })
    }

    /// Those at the server that a kubeconfig names.
    pub(crate) async fn at(kubeconfig: &str) -> Result<Self> {
        let kubeconfig = Kubeconfig::from_yaml(kubeconfig)?;
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await?;
        let client = kube::Client::try_from(config)?;
        Ok(Self { client })
    }

    /// One, if it is there.
    pub(crate) async fn find(&self, path: &str) -> Result<Option<Value>> {
        missing_is_none(self.send(Method::GET, path, JSON, None).await)
            .with_context(|| format!("cannot read {path}"))
    }

    /// All at a path that may select.
    pub(crate) async fn list(&self, path: &str) -> Result<Vec<Value>> {
        let mut list = self
            .send(Method::GET, path, JSON, None)
            .await
            .with_context(|| format!("cannot list {path}"))?;
        match list["items"].take() {
            Value::Array(items) => Ok(items),
            _ => Ok(Vec::new()),
        }
    }

    /// Makes one, unless it is there.
    pub(crate) async fn ensure(&self, path: &str, object: &Value) -> Result<()> {
        match self.send(Method::POST, path, JSON, Some(object)).await {
            Err(error) if code(&error) == Some(409) => Ok(()),
            made => made
                .map(drop)
                .with_context(|| format!("cannot create in {path}")),
        }
    }

    /// Replaces one, if it is still the one that was read. Reports whether it was.
    pub(crate) async fn replace(&self, path: &str, object: &Value) -> Result<bool> {
        match self.send(Method::PUT, path, JSON, Some(object)).await {
            Err(error) if code(&error) == Some(409) => Ok(false),
            done => done
                .map(|_| true)
                .with_context(|| format!("cannot replace {path}")),
        }
    }

    /// Merges a change into one.
    pub(crate) async fn merge(&self, path: &str, change: &Value) -> Result<()> {
        let merged = self.send(Method::PATCH, path, MERGE, Some(change)).await;
        merged
            .map(drop)
            .with_context(|| format!("cannot change {path}"))
    }

    /// Deletes one. Reports whether it was gone already.
    pub(crate) async fn delete(&self, path: &str) -> Result<bool> {
        let deleted = self.send(Method::DELETE, path, JSON, None).await;
        let found = missing_is_none(deleted).with_context(|| format!("cannot delete {path}"))?;
        Ok(found.is_none())
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        kind: &str,
        body: Option<&Value>,
    ) -> kube::Result<Value> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::ACCEPT, JSON)
            .header(header::CONTENT_TYPE, kind)
            .body(body.map(Value::to_string).unwrap_or_default().into_bytes())
            .map_err(kube::Error::HttpError)?;
        self.client.request(request).await
    }
}

fn missing_is_none(response: kube::Result<Value>) -> kube::Result<Option<Value>> {
    match response {
        Err(error) if code(&error) == Some(404) => Ok(None),
        other => other.map(Some),
    }
}

fn code(error: &kube::Error) -> Option<u16> {
    match error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}

/// The path of the objects of a kind in a namespace.
pub(crate) fn within(api_version: &str, namespace: &str, plural: &str) -> String {
    let root = if api_version.contains('/') {
        "apis"
    } else {
        "api"
    };
    format!("/{root}/{api_version}/namespaces/{namespace}/{plural}")
}

/// The name of an object.
pub(crate) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// Whether it was deleted.
pub(crate) fn is_going(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// Whether it has a finalizer.
pub(crate) fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    finalizers(object).any(|one| one == finalizer)
}

/// The change that gives it a finalizer. It holds for the object as it was read.
pub(crate) fn with_finalizer(object: &Value, finalizer: &str) -> Value {
    let all: Vec<&str> = finalizers(object).chain([finalizer]).collect();
    finalizers_are(object, &all)
}

/// The change that takes a finalizer away. It holds for the object as it was read.
pub(crate) fn without_finalizer(object: &Value, finalizer: &str) -> Value {
    let left: Vec<&str> = finalizers(object).filter(|one| *one != finalizer).collect();
    finalizers_are(object, &left)
}

fn finalizers_are(object: &Value, finalizers: &[&str]) -> Value {
    serde_json::json!({ "metadata": {
        "resourceVersion": object["metadata"]["resourceVersion"],
        "finalizers": finalizers,
    } })
}

fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    let all = object["metadata"]["finalizers"].as_array();
    all.into_iter().flatten().filter_map(Value::as_str)
}

/// The owner of a kind: its API version and name.
pub(crate) fn owner<'a>(object: &'a Value, kind: &str) -> Option<(&'a str, &'a str)> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    let owner = owners.iter().find(|owner| owner["kind"] == kind)?;
    Some((owner["apiVersion"].as_str()?, owner["name"].as_str()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn finalizers_of_others_stay() {
        let object = json!({ "metadata": { "resourceVersion": "7", "finalizers": ["a", "b"] } });
        assert!(has_finalizer(&object, "b") && !has_finalizer(&object, "c"));
        let more = with_finalizer(&object, "c");
        assert_eq!(more["metadata"]["finalizers"], json!(["a", "b", "c"]));
        let less = without_finalizer(&object, "a");
        assert_eq!(less["metadata"]["finalizers"], json!(["b"]));
        assert_eq!(less["metadata"]["resourceVersion"], "7");
    }

    #[test]
    fn owners_are_found_by_their_kind() {
        let object = json!({ "metadata": { "ownerReferences": [
            { "apiVersion": "a/v1", "kind": "MachineSet", "name": "set" },
            { "apiVersion": "b/v1", "kind": "Machine", "name": "one" },
        ] } });
        assert_eq!(owner(&object, "Machine"), Some(("b/v1", "one")));
        assert_eq!(owner(&object, "Cluster"), None);
    }
}
