//! Manifests that are embedded in the program.
//!
//! `{{namespace}}` and `{{name}}` in a manifest stand for those of the hosted control plane. All else that depends on
//! the hosted control plane is done by adapt functions, in code.

use serde_json::Value;

use super::error::{Error, Result};

/// A manifest: one object as YAML.
#[derive(Debug, Clone, Copy)]
pub struct Asset {
    /// The file's name.
    pub file: &'static str,
    /// What is in it.
    pub yaml: &'static str,
}

/// The manifests of a component, listed in the order of their names: `assets!("etcd": "pdb.yaml", "statefulset.yaml")`.
#[macro_export]
macro_rules! assets {
    ($directory:literal : $($file:literal),+ $(,)?) => {
        &[$($crate::component::asset::Asset {
            file: $file,
            yaml: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/assets/", $directory, "/", $file)),
        }),+]
    };
}

impl Asset {
    /// The object, for a hosted control plane.
    pub(crate) fn object(
        &self,
        component: &'static str,
        namespace: &str,
        name: &str,
    ) -> Result<Value> {
        let yaml = self
            .yaml
            .replace("{{namespace}}", namespace)
            .replace("{{name}}", name);
        serde_saphyr::from_str(&yaml).map_err(|source| Error::Manifest {
            component,
            file: self.file.to_owned(),
            kind: "manifest",
            source: source.into(),
        })
    }
}
