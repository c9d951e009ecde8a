//! Mirrors of images.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::set;

/// Mirrors of a repository.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageContentSource {
    /// Repository that images are named by, for example
    /// `images.example.com/openshift-release-dev/ocp-release`.
    #[schemars(length(max = 255))]
    pub source: String,
    /// Repositories that hold the same images and are tried instead, in this order. Images are
    /// taken from them by digest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 255), inner(length(max = 255)), transform = set)]
    pub mirrors: Vec<String>,
}
