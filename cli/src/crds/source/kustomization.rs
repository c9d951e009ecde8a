//! The part of kustomize that providers use to build their CRDs: a list of files, common labels, and patches that add
//! labels and annotations.
//!
//! Upstream's contract labels are in the kustomization and not in the CRDs beside it, which is why it must be read.
//! Anything else that a kustomization may ask for is refused, never left out silently.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{SourceError, file};
use crate::crds::Document;

const FILE_NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// Why a kustomization cannot be built here. The built release manifest of the same project is the way out.
#[derive(Debug, thiserror::Error)]
pub enum KustomizationError {
    /// It is not a kustomization, or uses a field that is not understood.
    #[error(
        "it is not understood: derive from the project's release manifest, or build it with kustomize first"
    )]
    NotUnderstood(#[source] Box<serde_saphyr::Error>),
    /// A patch changes more than labels, annotations and the conversion stanza.
    #[error(
        "patch {patch} changes {what}: derive from the project's release manifest, or build it with kustomize first"
    )]
    Patch {
        /// The patch's file, or `inline`.
        patch: String,
        /// What it changes.
        what: String,
    },
    /// A patch is for an object that is not listed.
    #[error("patch {patch} is for {target}, which is not among the resources: fix one of them")]
    PatchWithoutTarget {
        /// The patch's file.
        patch: String,
        /// The object's name.
        target: String,
    },
}

/// A kustomization, as far as it is understood.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Kustomization {
    #[serde(default, rename = "apiVersion")]
    _api_version: String,
    #[serde(default, rename = "kind")]
    _kind: String,
    /// Teaches kustomize where names stand in CRDs, for transformations that are not supported here anyhow.
    #[serde(default, rename = "configurations")]
    _configurations: Vec<String>,
    #[serde(default)]
    resources: Vec<String>,
    #[serde(default)]
    common_labels: BTreeMap<String, String>,
    #[serde(default)]
    labels: Vec<Labels>,
    #[serde(default)]
    patches: Vec<Patch>,
    #[serde(default)]
    patches_strategic_merge: Vec<String>,
}

/// Labels for every resource. Selectors do not matter to CRDs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Labels {
    pairs: BTreeMap<String, String>,
    #[serde(default, rename = "includeSelectors")]
    _include_selectors: bool,
    #[serde(default, rename = "includeTemplates")]
    _include_templates: bool,
}

/// A patch by file; inline patches and patches with a target are not supported.
#[derive(Debug, Deserialize)]
struct Patch {
    path: Option<String>,
    #[serde(default)]
    target: Option<Value>,
}

/// The kustomization file of a directory.
pub(super) fn find(directory: &Path) -> Option<PathBuf> {
    FILE_NAMES
        .iter()
        .map(|name| directory.join(name))
        .find(|path| path.is_file())
}

/// Builds what a kustomization file describes.
pub(super) fn build(path: &Path) -> Result<Vec<Document>, SourceError> {
    let failed = |error| SourceError::Kustomization {
        path: path.to_owned(),
        source: Box::new(error),
    };
    let text = fs::read_to_string(path).map_err(|source| file::read_error(path, source))?;
    let kustomization: Kustomization = serde_saphyr::from_str(&text)
        .map_err(|source| failed(KustomizationError::NotUnderstood(Box::new(source))))?;
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut documents = Vec::new();
    for resource in &kustomization.resources {
        documents.extend(file::read_file(&directory.join(resource))?);
    }
    for patch in kustomization.patch_files().map_err(failed)? {
        let patches = file::read_file(&directory.join(patch))?;
        for document in patches {
            apply(patch, &document.value, &mut documents).map_err(failed)?;
        }
    }
    kustomization.add_labels(&mut documents);
    Ok(documents)
}

// === impl Kustomization ===

impl Kustomization {
    fn patch_files(&self) -> Result<Vec<&str>, KustomizationError> {
        let mut files: Vec<_> = self
            .patches_strategic_merge
            .iter()
            .map(String::as_str)
            .collect();
        for patch in &self.patches {
            let Patch { path, target } = patch;
            let (Some(path), None) = (path, target) else {
                return Err(KustomizationError::Patch {
                    patch: path.clone().unwrap_or_else(|| "inline".to_owned()),
                    what: "objects chosen by a target, or is written inline".to_owned(),
                });
            };
            files.push(path);
        }
        Ok(files)
    }

    fn add_labels(&self, documents: &mut [Document]) {
        let pairs = self.labels.iter().map(|labels| &labels.pairs);
        let labels: Map<_, _> = pairs
            .chain([&self.common_labels])
            .flatten()
            .map(|(key, value)| (key.clone(), Value::from(value.as_str())))
            .collect();
        if labels.is_empty() {
            return;
        }
        for document in documents {
            merge(&mut document.value, "labels", &labels);
        }
    }
}

/// Applies a strategic merge patch that adds labels or annotations.
///
/// What it says of the conversion stanza is left out, because a private CRD has its own.
fn apply(name: &str, patch: &Value, documents: &mut [Document]) -> Result<(), KustomizationError> {
    if let Some(what) = unsupported(patch) {
        return Err(KustomizationError::Patch {
            patch: name.to_owned(),
            what,
        });
    }
    let same = |key: &str, document: &Document| document.value[key] == patch[key];
    let target = documents.iter_mut().find(|document| {
        same("kind", document) && document.value["metadata"]["name"] == patch["metadata"]["name"]
    });
    let Some(target) = target else {
        return Err(KustomizationError::PatchWithoutTarget {
            patch: name.to_owned(),
            target: patch["metadata"]["name"].to_string(),
        });
    };
    for field in ["labels", "annotations"] {
        if let Some(additions) = patch["metadata"][field].as_object() {
            merge(&mut target.value, field, additions);
        }
    }
    Ok(())
}

/// The first field of a patch that is none of those that are understood.
fn unsupported(patch: &Value) -> Option<String> {
    let Some(root) = patch.as_object() else {
        return Some("an object by JSON Patch".to_owned());
    };
    let outside = |value: &Value, prefix: &str, known: &[&str]| {
        let mut keys = value.as_object().into_iter().flat_map(Map::keys);
        keys.find(|key| !known.contains(&key.as_str()))
            .map(|key| format!("{prefix}{key}"))
    };
    outside(patch, "", &["apiVersion", "kind", "metadata", "spec"])
        .or_else(|| {
            outside(
                root.get("metadata")?,
                "metadata.",
                &["name", "labels", "annotations"],
            )
        })
        .or_else(|| outside(root.get("spec")?, "spec.", &["conversion"]))
}

fn merge(object: &mut Value, field: &str, additions: &Map<String, Value>) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    let map = metadata
        .entry(field)
        .or_insert_with(|| Value::Object(Map::new()));
    if let Some(map) = map.as_object_mut() {
        map.extend(additions.clone());
    }
}

#[cfg(test)]
mod tests;
