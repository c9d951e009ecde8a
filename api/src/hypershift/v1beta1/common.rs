//! Fields that several kinds share.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::schema::rule;

/// An amount, such as `500m` or `8Gi`. What the API server stores may be a number; here it is always text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Quantity(pub String);

/// A duration, such as `1h30m`. Its original spelling is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Duration(pub String);

/// A text that is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a span of time: write numbers with units, such as 1h30m or 90s")]
pub struct DurationError {
    /// The text.
    pub text: String,
}

/// A reference to a release image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Release {
    /// The image that holds the release, by tag or digest.
    #[schemars(
        length(min = 1, max = 253),
        transform = rule(
            r"self.matches(r'^\w+\S+$')",
            "image must be an image reference without spaces, such as images.example.com/example/release:4.20.1"
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

/// Keeps pods away from nodes unless they tolerate it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Taint {
    /// The taint's key, with an optional prefix such as `example.com/`.
    #[schemars(
        length(min = 1, max = 253),
        transform = rule(
            r"self.matches(r'^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?$')",
            "a taint's key must be a name of up to 63 letters, digits and -_. after an optional DNS name and a slash, such as example.com/dedicated"
        ),
    )]
    pub key: String,
    /// The taint's value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 253),
        transform = rule(
            "self.matches('^(([A-Za-z0-9][-_.A-Za-z0-9]*)?[A-Za-z0-9])?$')",
            "a taint's value must be empty, or letters, digits and -_. that begin and end with a letter or digit"
        ),
    )]
    pub value: Option<String>,
    /// What happens to pods that do not tolerate it.
    pub effect: TaintEffect,
}

/// What a taint does to pods that do not tolerate it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum TaintEffect {
    /// No new Pods are scheduled on the node.
    NoSchedule,
    /// New Pods are scheduled on the node only if there is no other one.
    PreferNoSchedule,
    /// No new Pods are scheduled on the node, and running ones are evicted.
    NoExecute,
}

// === impl Duration ===

impl Duration {
    /// How long it is.
    ///
    /// ```
    /// use api::hypershift::v1beta1::common::Duration;
    ///
    /// let duration = Duration("1h30m".to_owned());
    /// assert_eq!(duration.length().unwrap().as_secs(), 5400);
    /// assert!(Duration("soon".to_owned()).length().is_err());
    /// assert!(Duration("-5m".to_owned()).length().is_err());
    /// ```
    pub fn length(&self) -> Result<std::time::Duration, DurationError> {
        let error = || DurationError {
            text: self.0.clone(),
        };
        let duration: kube_core::Duration = self.0.parse().map_err(|_| error())?;
        if duration.is_negative() {
            return Err(error());
        }
        Ok(duration.into())
    }
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
