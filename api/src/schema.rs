//! What the derived JSON schemas cannot say by themselves: rules, merge strategies, the shapes of shared types,
//! and the way from a schema of Rust types to one that an API server takes ([`structural`]).

use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings, json_schema};
use serde_json::{Value, json};

use crate::features::FeatureSet;

mod structural;

/// The key of an object's validation rules.
pub(crate) const RULES: &str = "x-kubernetes-validations";
/// Marks a field, a value or a rule of the technology preview. No definition has the mark.
const PREVIEW: &str = "x-tech-preview";

/// The structural schema of a type, with what a feature set has of it.
pub(crate) fn of<T: JsonSchema>(features: FeatureSet) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let schema = settings.into_generator().into_root_schema_for::<T>();
    structural::structural(schema.to_value(), features)
}

// Transforms, for `#[schemars(transform = ...)]` on a type or a field. One item may have several; rules add up.

/// A rule in CEL, and what a user who breaks it should do.
pub(crate) fn rule(expression: &'static str, message: &'static str) -> impl FnMut(&mut Schema) {
    move |schema| push_rule(schema, json!({ "rule": expression, "message": message }))
}

fn push_rule(schema: &mut Schema, rule: Value) {
    let rules = schema
        .ensure_object()
        .entry(RULES)
        .or_insert_with(|| json!([]));
    if let Value::Array(rules) = rules {
        rules.push(rule);
    }
}

/// The optional field or the value of an enum is in the technology preview only.
pub(crate) fn tech_preview(schema: &mut Schema) {
    schema.insert(PREVIEW.to_owned(), true.into());
}

/// A rule of the technology preview: one about its fields.
pub(crate) fn preview_rule(
    expression: &'static str,
    message: &'static str,
) -> impl FnMut(&mut Schema) {
    move |schema| {
        let rule = json!({ "rule": expression, "message": message, PREVIEW: true });
        push_rule(schema, rule);
    }
}

/// The value cannot change once it is set.
pub(crate) fn immutable(message: &'static str) -> impl FnMut(&mut Schema) {
    rule("self == oldSelf", message)
}

/// Inserts what no other transform knows, such as `minProperties`.
pub(crate) fn with(key: &'static str, value: impl Into<Value>) -> impl FnMut(&mut Schema) {
    let value = value.into();
    move |schema| {
        schema.insert(key.to_owned(), value.clone());
    }
}

/// The client that applies the list owns all of it.
pub(crate) fn atomic_list(schema: &mut Schema) {
    schema.insert("x-kubernetes-list-type".to_owned(), "atomic".into());
}

/// The list's items are unique and are owned by the client that applies them.
pub(crate) fn set(schema: &mut Schema) {
    schema.insert("x-kubernetes-list-type".to_owned(), "set".into());
}

/// These fields identify the list's items, and are owned by the client that applies them.
pub(crate) fn list_map<const N: usize>(keys: [&'static str; N]) -> impl FnMut(&mut Schema) {
    move |schema| {
        schema.insert("x-kubernetes-list-type".to_owned(), "map".into());
        schema.insert(
            "x-kubernetes-list-map-keys".to_owned(),
            json!(keys.as_slice()),
        );
    }
}

/// The field may be sent as `null`.
pub(crate) fn nullable(schema: &mut Schema) {
    schema.insert("nullable".to_owned(), true.into());
}

/// Fields that the schema does not know are kept.
pub(crate) fn preserve_unknown(schema: &mut Schema) {
    schema.insert(
        "x-kubernetes-preserve-unknown-fields".to_owned(),
        true.into(),
    );
}

/// An integer of no stated width.
pub(crate) fn no_format(schema: &mut Schema) {
    schema.remove("format");
}

/// Declares markers: types that represent another crate's type, in `#[schemars(with = "...")]`.
macro_rules! markers {
    ($($(#[$doc:meta])* $name:ident => $schema:tt)*) => {$(
        $(#[$doc])*
        pub(crate) enum $name {}

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    )*};
}

markers! {
    /// A `Time` of `meta/v1`.
    Time => {"type": "string", "format": "date-time"}
    /// A number, or a text such as a percentage.
    IntOrString => {
        "x-kubernetes-int-or-string": true,
        "anyOf": [{"type": "integer"}, {"type": "string"}],
    }
    /// A `Condition` of `meta/v1`.
    Condition => {
        "description": "One aspect of the object's state.",
        "type": "object",
        "required": ["lastTransitionTime", "message", "reason", "status", "type"],
        "properties": {
            "lastTransitionTime": {
                "description": "When the status last changed.",
                "type": "string",
                "format": "date-time",
            },
            "message": {
                "description": "What is the case, for people.",
                "type": "string",
                "maxLength": 32768,
            },
            "observedGeneration": {
                "description": "The generation of the object that this was found for; an older one means that the condition is out of date.",
                "type": "integer",
                "format": "int64",
                "minimum": 0,
            },
            "reason": {
                "description": "Why, in one word, for programs.",
                "type": "string",
                "minLength": 1,
                "maxLength": 1024,
                "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
            },
            "status": {
                "description": "Whether it is the case.",
                "type": "string",
                "enum": ["True", "False", "Unknown"],
            },
            "type": {
                "description": "Which aspect this is about.",
                "type": "string",
                "maxLength": 316,
                "pattern": "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
            },
        },
    }
    /// A `LocalObjectReference` of `core/v1`.
    LocalObjectReference => {
        "description": "An object of the same namespace.",
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "name": {
                "description": "The object's name.",
                "type": "string",
                "default": "",
            },
        },
    }
    /// A `Toleration` of `core/v1`.
    Toleration => {
        "description": "Lets pods onto nodes that a taint keeps them away from.",
        "type": "object",
        "properties": {
            "effect": {
                "description": "The taint's effect: NoSchedule, PreferNoSchedule or NoExecute. Unset fits all.",
                "type": "string",
            },
            "key": {
                "description": "The taint's key. Unset, with operator Exists, fits all.",
                "type": "string",
            },
            "operator": {
                "description": "How the value is compared: Equal, or Exists, which fits any. Unset means Equal.",
                "type": "string",
            },
            "tolerationSeconds": {
                "description": "How long pods stay on a node once it has a taint of effect NoExecute. Unset: for ever.",
                "type": "integer",
                "format": "int64",
            },
            "value": {
                "description": "The taint's value, for operator Equal.",
                "type": "string",
            },
        },
    }
    /// A `LabelSelector` of `meta/v1`.
    LabelSelector => {
        "description": "Objects with these labels. Several demands all have to hold; none selects everything.",
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "matchExpressions": {
                "description": "Demands on labels, each by an operator.",
                "type": "array",
                "x-kubernetes-list-type": "atomic",
                "items": {
                    "description": "A demand on one label.",
                    "type": "object",
                    "required": ["key", "operator"],
                    "properties": {
                        "key": {
                            "description": "The label's key.",
                            "type": "string",
                        },
                        "operator": {
                            "description": "How the label is compared: In, NotIn, Exists or DoesNotExist.",
                            "type": "string",
                        },
                        "values": {
                            "description": "The values for In and NotIn; empty for Exists and DoesNotExist.",
                            "type": "array",
                            "x-kubernetes-list-type": "atomic",
                            "items": {"type": "string"},
                        },
                    },
                },
            },
            "matchLabels": {
                "description": "Labels that the object must have, with these values.",
                "type": "object",
                "additionalProperties": {"type": "string"},
            },
        },
    }
}
