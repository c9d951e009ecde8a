//! Reads manifests from a directory, and applies them in dependency order.

use std::fmt;
use std::path::{Path, PathBuf};

use kube::api::ApiResource;
use kube::core::GroupVersionKind;
use kube::discovery;
use serde_json::Value;
use support::apply::{self, Applier};

use super::feature_gates;

/// Extensions of manifest files.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];
/// The kind whose status has entries of several versions.
const FEATURE_GATE: &str = "FeatureGate";
/// Directory with the renderers' input, which is not applied.
const INPUT: &str = "input";

/// One object to apply.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Manifest(Value);

/// Reading manifests failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unreadable {
    /// An I/O error.
    #[error("failed to read {}", path.display())]
    File {
        path: PathBuf,
        source: std::io::Error,
    },
    /// A file is not valid YAML. Its content is not quoted, because it may be secret.
    #[error("{} is neither valid YAML nor JSON at line {line}", path.display())]
    Text { path: PathBuf, line: u64 },
}

/// Applying an object failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// Its kind is not served yet.
    #[error("the kind is not served")]
    Kind(#[source] kube::Error),
    /// The live object cannot be read.
    #[error("failed to get {object}")]
    Get { object: String, source: kube::Error },
    /// The API server rejected the object.
    #[error(transparent)]
    Apply(#[from] apply::Error),
}

/// Reads all objects below a directory: Namespaces and CRDs first, then by file name.
pub(super) fn read(directory: &Path) -> Result<Vec<Manifest>, Unreadable> {
    let mut files = Vec::new();
    collect(directory, &mut files)?;
    files.sort();
    let mut manifests = Vec::new();
    for file in files {
        manifests.extend(objects(&file)?.into_iter().map(Manifest));
    }
    manifests.sort_by_key(Manifest::rank);
    Ok(manifests)
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> Result<(), Unreadable> {
    let unreadable = |source| Unreadable::File {
        path: directory.to_owned(),
        source,
    };
    for entry in std::fs::read_dir(directory).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != INPUT) {
                collect(&path, files)?;
            }
        } else if is_manifest(&path) {
            files.push(path);
        }
    }
    Ok(())
}

fn is_manifest(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| ENDINGS.contains(&ending))
}

fn objects(file: &Path) -> Result<Vec<Value>, Unreadable> {
    let text = std::fs::read_to_string(file).map_err(|source| Unreadable::File {
        path: file.to_owned(),
        source,
    })?;
    // As in kubectl, `on` is not a boolean.
    let options = serde_saphyr::options! { strict_booleans: true };
    let documents: Result<Vec<Value>, _> = serde_saphyr::from_multiple_with_options(&text, options);
    let documents = documents.map_err(|error| Unreadable::Text {
        path: file.to_owned(),
        line: error.location().map_or(1, |location| location.line()),
    })?;
    Ok(documents.into_iter().flat_map(flatten).collect())
}

/// Expands lists; documents without a kind are ignored.
fn flatten(document: Value) -> Vec<Value> {
    let kind = document["kind"].as_str().unwrap_or_default();
    if kind.is_empty() {
        return Vec::new();
    }
    match document["items"].as_array() {
        Some(items) if kind.ends_with("List") => items.clone(),
        _ => vec![document],
    }
}

// === impl Manifest ===

impl Manifest {
    fn rank(&self) -> u8 {
        match self.text("/kind") {
            "Namespace" => 0,
            "CustomResourceDefinition" => 1,
            _ => 2,
        }
    }

    fn text(&self, pointer: &str) -> &str {
        let found = self.0.pointer(pointer).and_then(Value::as_str);
        found.unwrap_or_default()
    }

    /// Applies the object, and its status if it has one.
    pub(super) async fn apply(&self, applier: &Applier) -> Result<(), Error> {
        let resource = self.resource(applier.client()).await?;
        applier.apply_value(&resource, self.0.clone()).await?;
        if self.0.get("status").is_some_and(Value::is_object) && self.rank() == 2 {
            let status = self.status(applier, &resource).await?;
            applier.apply_status(&resource, status).await?;
        }
        Ok(())
    }

    /// The object with the status to apply.
    async fn status(&self, applier: &Applier, resource: &ApiResource) -> Result<Value, Error> {
        let mut object = self.0.clone();
        if resource.kind == FEATURE_GATE {
            let found =
                feature_gates::read(applier.client(), resource, self.text("/metadata/name"));
            let (live, version) = found.await.map_err(|source| Error::Get {
                object: self.to_string(),
                source,
            })?;
            object["status"] = feature_gates::merged(&object, &live, version.as_ref());
        }
        Ok(object)
    }

    async fn resource(&self, client: &kube::Client) -> Result<ApiResource, Error> {
        let (group, version) = match self.text("/apiVersion").split_once('/') {
            Some((group, version)) => (group, version),
            None => ("", self.text("/apiVersion")),
        };
        let kind = GroupVersionKind::gvk(group, version, self.text("/kind"));
        let found = discovery::pinned_kind(client, &kind).await;
        found.map(|(resource, _)| resource).map_err(Error::Kind)
    }
}

impl From<Value> for Manifest {
    fn from(object: Value) -> Self {
        Self(object)
    }
}

impl fmt::Display for Manifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.text("/kind"), self.text("/metadata/name"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use support::testing::{Answer, Expect, Scenario};

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let manifests = read(directory).unwrap();
        manifests.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn crds_are_applied_before_their_objects() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(
            "manifests/a.yaml",
            "kind: FeatureGate\nmetadata: {name: cluster}\n",
        );
        write(
            "output/b.yaml",
            "---\nkind: CustomResourceDefinition\nmetadata: {name: x}\n---\nkind: Namespace\nmetadata: {name: n}\n",
        );
        write(
            "output/c.json",
            r#"{"kind":"ConfigMapList","items":[{"kind":"ConfigMap","metadata":{"name":"c"}}]}"#,
        );
        write("input/d.yaml", "kind: Never\nmetadata: {name: d}\n");
        write("readme.txt", "kind: Never\n");
        let expected = [
            "Namespace n",
            "CustomResourceDefinition x",
            "FeatureGate cluster",
            "ConfigMap c",
        ];
        assert_eq!(names(dir.path()), expected);
    }

    #[test]
    fn invalid_yaml_is_rejected_without_quoting_it() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.yaml"), "a: [secret\n").unwrap();
        let error = support::error::chain(&read(dir.path()).unwrap_err());
        assert!(
            error.contains("a.yaml") && !error.contains("secret"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn status_is_applied_after_its_object() {
        let gates = "/apis/config.openshift.io/v1/featuregates/cluster";
        let version = "/apis/config.openshift.io/v1/clusterversions/version";
        let object = json!({
            "apiVersion": "config.openshift.io/v1",
            "kind": "FeatureGate",
            "metadata": { "name": "cluster" },
            "spec": { "featureSet": "" },
            "status": { "featureGates": [{ "version": "2" }] },
        });
        let live = json!({
            "metadata": { "name": "cluster" },
            "status": { "featureGates": [{ "version": "1" }] },
        });
        let list = json!({ "groupVersion": "config.openshift.io/v1", "resources": [{
            "name": "featuregates", "kind": "FeatureGate", "namespaced": false, "singularName": "featuregate", "verbs": ["get"],
        }]});
        let scenario = Scenario::new([
            Expect::get("/apis/config.openshift.io/v1").answer(Answer::ok(&list)),
            Expect::get(gates).answer(Answer::error(404, "NotFound")),
            Expect::patch(gates).answer(Answer::ok(&object)),
            Expect::get(gates).answer(Answer::ok(&live)),
            Expect::get(version).answer(Answer::error(404, "NotFound")),
            Expect::get(gates).answer(Answer::ok(&json!({ "metadata": { "name": "cluster" } }))),
            Expect::patch(&format!("{gates}/status"))
                .body(json!({ "status": { "featureGates": [{ "version": "2" }, { "version": "1" }] } }))
                .answer(Answer::ok(&object)),
        ]);
        let applier = Applier::new(scenario.client(), "test");
        Manifest::from(object).apply(&applier).await.unwrap();
        scenario.finish();
    }
}
