//! Manifests embedded in the binary.
//!
//! `{{namespace}}` and `{{name}}` are placeholders for those of the hosted control plane. Adapt functions set
//! everything else that depends on the hosted control plane.

use std::sync::OnceLock;

use serde_json::Value;

use super::error::{Error, Result};

/// A manifest: one object as YAML. It is parsed once per process, because components are rendered in each reconcile.
#[derive(Debug)]
pub struct Asset {
    /// The file's name.
    pub file: &'static str,
    /// The file's content.
    pub yaml: &'static str,
    template: OnceLock<Value>,
}

/// The manifests of a component, sorted by name: `assets!("pdb.yaml", "statefulset.yaml")` are in the directory
/// `assets` next to the calling file, `assets!("etcd": "pdb.yaml")` in `assets/etcd` of the crate.
#[macro_export]
macro_rules! assets {
    ($directory:literal : $($file:literal),+ $(,)?) => {
        $crate::assets!(@ (concat!(env!("CARGO_MANIFEST_DIR"), "/assets/", $directory, "/")) $($file),+)
    };
    (@ ($directory:expr) $($file:literal),+) => {{
        const COUNT: usize = [$($file),+].len();
        static ASSETS: [$crate::asset::Asset; COUNT] = [$($crate::asset::Asset::new(
            $file,
            include_str!(concat!($directory, $file)),
        )),+];
        &ASSETS
    }};
    ($($file:literal),+ $(,)?) => {
        $crate::assets!(@ ("assets/") $($file),+)
    };
}

impl Asset {
    /// Creates a manifest from a file.
    pub const fn new(file: &'static str, yaml: &'static str) -> Self {
        Self {
            file,
            yaml,
            template: OnceLock::new(),
        }
    }

    /// Returns the object for a hosted control plane.
    pub(crate) fn object(
        &self,
        component: &'static str,
        namespace: &str,
        name: &str,
    ) -> Result<Value> {
        let mut object = self.template(component)?.clone();
        fill_in(&mut object, namespace, name);
        Ok(object)
    }

    /// Returns the API version and kind of the object.
    pub(crate) fn kind(&self, component: &'static str) -> Result<(String, String)> {
        let template = self.template(component)?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Ok((text(&template["apiVersion"]), text(&template["kind"])))
    }

    fn template(&self, component: &'static str) -> Result<&Value> {
        if let Some(template) = self.template.get() {
            return Ok(template);
        }
        let template = serde_saphyr::from_str(self.yaml).map_err(|source| Error::Manifest {
            component,
            file: self.file.to_owned(),
            kind: "manifest",
            source: source.into(),
        })?;
        Ok(self.template.get_or_init(|| template))
    }
}

/// Replaces the placeholders in all strings.
fn fill_in(value: &mut Value, namespace: &str, name: &str) {
    match value {
        Value::String(text) if text.contains("{{") => {
            *text = text
                .replace("{{namespace}}", namespace)
                .replace("{{name}}", name);
        }
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| fill_in(item, namespace, name)),
        Value::Object(fields) => fields
            .values_mut()
            .for_each(|value| fill_in(value, namespace, name)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn manifests_are_parsed_once_and_filled_per_control_plane() {
        static ASSET: Asset = Asset::new("a.yaml", "kind: A\nof: [\"{{namespace}}/{{name}}\"]\n");
        for (namespace, name) in [("clusters-a", "a"), ("clusters-b", "b")] {
            let object = ASSET.object("test", namespace, name).unwrap();
            assert_eq!(
                object,
                json!({ "kind": "A", "of": [format!("{namespace}/{name}")] })
            );
        }
        let template = ASSET.template("test").unwrap();
        assert!(std::ptr::eq(template, ASSET.template("test").unwrap()));
    }
}
