//! Fields that several kinds share.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::schema::rule;

/// An amount, such as `500m` or `8Gi`. What the API server stores may be a number; here it is always text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Quantity(pub String);

/// A reference to a release image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Release {
    /// The image that holds the release, by tag or digest.
    #[schemars(
        length(min = 1, max = 253),
        transform = rule(
            r"self.matches(r'^\w+\S+$')",
            "image must be an image reference without spaces, such as quay.io/example/release:4.20.1"
        ),
    )]
    pub image: String,
}

/// A key and a value that a cloud attaches to what it creates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AwsResourceTag {
    /// The tag's key.
    #[schemars(
        length(min = 1, max = 128),
        transform = rule(
            "self.matches('^[-A-Za-z0-9_.:/=+@]+$')",
            "a tag's key may hold letters, digits and _.:/=+-@ only: rename the tag"
        ),
    )]
    pub key: String,
    /// The tag's value.
    #[schemars(
        length(min = 1, max = 256),
        transform = rule(
            "self.matches('^[-A-Za-z0-9_.:/=+@]+$')",
            "a tag's value may hold letters, digits and _.:/=+-@ only: change the value"
        ),
    )]
    pub value: String,
}

// === impl Quantity ===

impl From<Quantity> for k8s_openapi::apimachinery::pkg::api::resource::Quantity {
    fn from(quantity: Quantity) -> Self {
        Self(quantity.0)
    }
}

/// Numbers are taken as well, as everywhere in Kubernetes.
impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Raw {
            Text(String),
            Number(serde_json::Number),
        }
        Ok(match Raw::deserialize(deserializer)? {
            Raw::Text(text) => Self(text),
            Raw::Number(number) => Self(number.to_string()),
        })
    }
}

impl JsonSchema for Quantity {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Quantity".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "x-kubernetes-int-or-string": true,
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
        })
    }
}
