//! The forms in which objects are sent: whole, or only their metadata.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::groups::Kind;

const META: &str = "meta.k8s.io/v1";

/// A form of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    Whole,
    /// `PartialObjectMetadata`, which garbage collection asks for.
    Metadata,
}

// === impl View ===

impl View {
    pub(crate) fn object(self, object: &Value) -> Value {
        match self {
            Self::Whole => object.clone(),
            Self::Metadata => json!({
                "apiVersion": META,
                "kind": "PartialObjectMetadata",
                "metadata": object["metadata"],
            }),
        }
    }

    pub(crate) fn list(self, kind: &Kind, objects: &[Arc<Value>], version: u64) -> Value {
        let items: Vec<_> = objects.iter().map(|object| self.object(object)).collect();
        let (api_version, list) = match self {
            Self::Whole => (kind.api_version(), format!("{}List", kind.kind)),
            Self::Metadata => (META.to_owned(), "PartialObjectMetadataList".to_owned()),
        };
        json!({
            "apiVersion": api_version,
            "kind": list,
            "metadata": { "resourceVersion": version.to_string() },
            "items": items,
        })
    }
}
