//! Parses the manifests of a pool's configuration.

use api::hypershift::v1beta1::image_content_source::ImageContentSource;
use serde_json::Value;

use super::machine_config::MachineConfig;
use super::runtime::{Mirror, Pull};

/// The pool's configuration is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{manifest}: {field}: {problem}")]
pub(in crate::ignition_server) struct InvalidConfig {
    /// Kind and name.
    pub(super) manifest: String,
    /// The field.
    pub(super) field: String,
    /// What is wrong, and how to fix it.
    pub(super) problem: String,
}

/// A manifest with a `spec`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Manifest {
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) spec: Value,
}

/// All manifests of a pool by kind, sorted by name.
#[derive(Debug, Default)]
pub(super) struct Manifests {
    pub(super) machine_configs: Vec<MachineConfig>,
    pub(super) kubelet_configs: Vec<Manifest>,
    pub(super) runtime_configs: Vec<Manifest>,
    pub(super) mirrors: Vec<Mirror>,
    /// Policies for signatures of images.
    pub(super) image_policies: Vec<Manifest>,
}

// === impl InvalidConfig ===

impl InvalidConfig {
    fn text(problem: String) -> Self {
        Self {
            manifest: "the pool's configuration".to_owned(),
            field: "document".to_owned(),
            problem,
        }
    }
}

// === impl Manifest ===

impl Manifest {
    /// Creates an error for a field.
    pub(super) fn invalid(&self, field: &str, problem: impl Into<String>) -> InvalidConfig {
        InvalidConfig {
            manifest: format!("{} {}", self.kind, self.name),
            field: field.to_owned(),
            problem: problem.into(),
        }
    }

    fn read(document: &Value, index: usize) -> Self {
        let text = |pointer: &str| document.pointer(pointer).and_then(Value::as_str);
        let unnamed = || format!("number {}", index + 1);
        Self {
            kind: text("/kind").unwrap_or("manifest").to_owned(),
            name: text("/metadata/name").map_or_else(unnamed, str::to_owned),
            spec: document["spec"].clone(),
        }
    }

    fn mirrors(&self) -> Result<Vec<Mirror>, InvalidConfig> {
        let (list, pull) = match self.kind.as_str() {
            "ImageTagMirrorSet" => ("imageTagMirrors", Pull::ByTag),
            "ImageDigestMirrorSet" => ("imageDigestMirrors", Pull::ByDigest),
            _ => ("repositoryDigestMirrors", Pull::ByDigest),
        };
        let field = format!("spec.{list}");
        let sources = match &self.spec[list] {
            Value::Null => Vec::new(),
            found => serde_json::from_value::<Vec<ImageContentSource>>(found.clone())
                .map_err(|error| self.invalid(&field, error.to_string()))?,
        };
        Ok(sources
            .into_iter()
            .map(|source| Mirror { source, pull })
            .collect())
    }
}

// === impl Manifests ===

impl Manifests {
    /// Reads YAML documents.
    pub(super) fn read(text: &str) -> Result<Self, InvalidConfig> {
        let documents: Vec<Value> = serde_saphyr::from_multiple_with_options(text, options(text))
            .map_err(|error| InvalidConfig::text(not_yaml(&error)))?;
        let mut found: Vec<_> = documents
            .iter()
            .filter(|document| !document.is_null())
            .enumerate()
            .map(|(index, document)| Manifest::read(document, index))
            .collect();
        found.sort_by(|a, b| a.name.cmp(&b.name));
        let mut manifests = Self::default();
        for manifest in found {
            manifests.add(manifest)?;
        }
        Ok(manifests)
    }

    fn add(&mut self, manifest: Manifest) -> Result<(), InvalidConfig> {
        match manifest.kind.as_str() {
            "MachineConfig" => self.machine_configs.push(MachineConfig::from(manifest)),
            "KubeletConfig" => self.kubelet_configs.push(manifest),
            "ContainerRuntimeConfig" => self.runtime_configs.push(manifest),
            "ImageContentSourcePolicy" | "ImageDigestMirrorSet" | "ImageTagMirrorSet" => {
                self.mirrors.extend(manifest.mirrors()?);
            }
            "ClusterImagePolicy" => self.image_policies.push(manifest),
            _ => {
                return Err(manifest.invalid(
                    "kind",
                    "unsupported kind: use MachineConfig, KubeletConfig, ContainerRuntimeConfig, \
                     ImageContentSourcePolicy, ImageDigestMirrorSet, ImageTagMirrorSet or ClusterImagePolicy",
                ));
            }
        }
        Ok(())
    }
}

/// The operator writes these manifests without aliases. Whatever they are, they must not need much more memory than their
/// text.
fn options(text: &str) -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_total_scalar_bytes: 2 * text.len() + (64 << 10),
            max_nodes: 500_000,
            max_aliases: 1_000,
            max_recorded_anchor_events: 50_000,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 10_000,
        },
        strict_booleans: true,
    }
}

/// The parser's message is not used, because it would quote the content.
fn not_yaml(error: &serde_saphyr::Error) -> String {
    match error.location() {
        Some(location) => format!("invalid YAML at line {}", location.line()),
        None => "invalid YAML".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check T22.
    #[test]
    fn configs_that_expand_to_too_much_are_invalid() {
        let manifest = |spec: &str| {
            Manifests::read(&format!(
                "kind: KubeletConfig\nmetadata: {{name: a}}\nspec:\n{spec}"
            ))
        };
        let long = "a".repeat(100_000);
        let refused = manifest(&format!("  a: &a {long}\n  b: [*a, *a, *a]\n")).unwrap_err();
        assert!(refused.problem.starts_with("invalid YAML"), "{refused}");
        let read = manifest(&format!("  a: &a {long}\n  b: [*a]\n")).unwrap();
        assert_eq!(read.kubelet_configs[0].spec["b"][0], long);
    }
}
