//! Documents that the binary carries: the standard CRDs of the pinned modules, and those of other projects that
//! providers use, without descriptions.
//!
//! They are fetched before the build (`cargo xtask embed`); a binary that was built without them says so when they are
//! asked for.

use api::group::GroupTable;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::module::{self, Module, PINNED, SHARED};
use super::{SourceError, shared};
use crate::crds::schema;
use crate::crds::{Batch, Document, Origin};

/// How the source is called in messages.
const NAME: &str = "the CRDs in this binary";

#[cfg(embedded_crds)]
const PACKED: Option<&str> = Some(include_str!("../../../embedded/crds.json"));
#[cfg(not(embedded_crds))]
const PACKED: Option<&str> = None;

/// Why the binary's own CRDs cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedError {
    /// The build had none.
    #[error(
        "this binary was built without CRDs: name a source, for example a Go module or a release manifest's URL, or \
         build it again after cargo xtask embed"
    )]
    Missing,
    /// They are of other modules than the release is tested with.
    #[error(
        "this binary carries the CRDs of other modules than {wanted}: build it again after cargo xtask embed"
    )]
    Outdated {
        /// What is pinned.
        wanted: String,
    },
    /// They cannot be read.
    #[error("this binary's CRDs are damaged: build it again after cargo xtask embed")]
    Damaged(#[source] serde_json::Error),
}

/// CRDs as they lie in the binary.
#[derive(Debug, Serialize, Deserialize)]
struct Package {
    /// `MODULE@VERSION`, in the order of [`PINNED`] and [`SHARED`].
    modules: Vec<String>,
    documents: Vec<Packed>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Packed {
    source: String,
    document: Option<usize>,
    crd: Value,
}

/// The standard CRDs that this binary carries.
pub fn read() -> Result<Batch, EmbeddedError> {
    unpack(PACKED.ok_or(EmbeddedError::Missing)?)
}

/// What the next build is to carry: the CRDs of paired groups of all pinned modules, and the shared ones, as one JSON
/// document.
pub fn pack() -> Result<String, SourceError> {
    let table = GroupTable::default();
    let mut documents = Vec::new();
    for module in Module::pinned().chain(Module::shared()) {
        let batch = module::read(&module)?;
        documents.extend(
            batch
                .documents
                .into_iter()
                .filter_map(|d| packed(&table, d)),
        );
    }
    let package = Package {
        modules: pinned(),
        documents,
    };
    let mut text = serde_json::to_string(&package).expect("invariant: JSON values are JSON");
    text.push('\n');
    Ok(text)
}

fn pinned() -> Vec<String> {
    let modules = PINNED.iter().chain(&SHARED);
    modules
        .map(|(path, version)| format!("{path}@{version}"))
        .collect()
}

/// Nothing for an object that would be left out anyway.
fn packed(table: &GroupTable, document: Document) -> Option<Packed> {
    let Document { origin, mut value } = document;
    if value["kind"] != "CustomResourceDefinition" {
        return None;
    }
    let is_paired = table
        .find(value["spec"]["group"].as_str()?.as_bytes())
        .is_some();
    if !is_paired && !shared::is_shared(&value) {
        return None;
    }
    let versions = value.pointer_mut("/spec/versions")?.as_array_mut()?;
    versions
        .iter_mut()
        .filter_map(|version| version.pointer_mut("/schema/openAPIV3Schema"))
        .for_each(schema::strip_descriptions);
    Some(Packed {
        source: origin.source,
        document: origin.document,
        crd: value,
    })
}

fn unpack(text: &str) -> Result<Batch, EmbeddedError> {
    let package: Package = serde_json::from_str(text).map_err(EmbeddedError::Damaged)?;
    if package.modules != pinned() {
        return Err(EmbeddedError::Outdated {
            wanted: pinned().join(", "),
        });
    }
    let documents = package.documents.into_iter().map(|packed| Document {
        origin: Origin {
            source: packed.source,
            document: packed.document,
        },
        value: packed.crd,
    });
    Ok(Batch {
        name: NAME.to_owned(),
        documents: documents.collect(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document(value: Value) -> Document {
        Document {
            origin: Origin {
                source: "module/file.yaml".to_owned(),
                document: Some(2),
            },
            value,
        }
    }

    fn crd(group: &str) -> Value {
        let schema =
            json!({"description": "long", "properties": {"description": {"type": "string"}}});
        json!({
            "kind": "CustomResourceDefinition",
            "spec": {"group": group, "versions": [{"schema": {"openAPIV3Schema": schema}}]},
        })
    }

    #[test]
    fn what_is_packed_is_unpacked_without_descriptions() {
        let table = GroupTable::default();
        let group = "cluster.x-k8s.io";
        let package = Package {
            modules: pinned(),
            documents: vec![packed(&table, document(crd(group))).unwrap()],
        };
        let batch = unpack(&serde_json::to_string(&package).unwrap()).unwrap();
        let [Document { origin, value }] = &batch.documents[..] else {
            panic!("{batch:?}");
        };
        assert_eq!(origin.to_string(), "module/file.yaml, document 2");
        let schema = &value["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        assert_eq!(
            *schema,
            json!({"properties": {"description": {"type": "string"}}})
        );
    }

    #[test]
    fn other_groups_and_other_kinds_are_left_out() {
        let table = GroupTable::default();
        assert!(packed(&table, document(crd("example.com"))).is_none());
        assert!(packed(&table, document(json!({"kind": "Service"}))).is_none());
        let mut image = crd(shared::OPENSTACK);
        assert!(packed(&table, document(image.clone())).is_none());
        image["spec"]["names"] = json!({"plural": "images"});
        assert!(packed(&table, document(image)).is_some());
    }

    #[test]
    fn other_versions_and_damage_are_refused() {
        let old = json!({"modules": ["example.com/m@v1.0.0"], "documents": []}).to_string();
        assert!(matches!(unpack(&old), Err(EmbeddedError::Outdated { .. })));
        assert!(matches!(unpack("{"), Err(EmbeddedError::Damaged(_))));
    }

    /// Only where the build had them.
    #[test]
    fn the_binarys_own_crds_are_of_the_pinned_modules() {
        match read() {
            Ok(batch) => assert!(batch.documents.len() > 100, "{}", batch.documents.len()),
            Err(error) => assert!(matches!(error, EmbeddedError::Missing), "{error}"),
        }
    }
}
