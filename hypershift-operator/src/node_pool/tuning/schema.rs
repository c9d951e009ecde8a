//! The fields that manifests of tuning have. A field that is not known is an error: it would have no effect, and a misspelled
//! one would be missed.

use serde_json::{Map, Value};

use self::Field::{Optional, Required};

/// The form of a value.
#[derive(Debug)]
pub(super) enum Shape {
    Text,
    Flag,
    /// A number from zero on, without a fraction.
    Number,
    /// Texts by key.
    Texts,
    List(&'static Shape),
    Object(&'static [Field]),
    /// Not looked into.
    Any,
}

/// A field of an object: its name and its form.
#[derive(Debug)]
pub(super) enum Field {
    Optional(&'static str, Shape),
    Required(&'static str, Shape),
}

/// `Tuned` of tuned.openshift.io/v1.
pub(super) static TUNED: Shape = Shape::Object(&[
    Required("apiVersion", Shape::Text),
    Required("kind", Shape::Text),
    Required("metadata", METADATA),
    Required(
        "spec",
        Shape::Object(&[
            Optional("managementState", Shape::Text),
            Optional("profile", Shape::List(&TUNED_PROFILE)),
            Optional("recommend", Shape::List(&RECOMMEND)),
        ]),
    ),
    Optional("status", Shape::Any),
]);

/// `PerformanceProfile` of performance.openshift.io/v2.
pub(super) static PERFORMANCE_PROFILE: Shape = Shape::Object(&[
    Required("apiVersion", Shape::Text),
    Required("kind", Shape::Text),
    Required("metadata", METADATA),
    Required(
        "spec",
        Shape::Object(&[
            Optional("additionalKernelArgs", Shape::List(&Shape::Text)),
            Required(
                "cpu",
                Shape::Object(&[
                    Optional("balanceIsolated", Shape::Flag),
                    Required("isolated", Shape::Text),
                    Optional("offlined", Shape::Text),
                    Required("reserved", Shape::Text),
                    Optional("shared", Shape::Text),
                ]),
            ),
            Optional("globallyDisableIrqLoadBalancing", Shape::Flag),
            Optional(
                "hardwareTuning",
                Shape::Object(&[
                    Optional("isolatedCpuFreq", Shape::Number),
                    Optional("reservedCpuFreq", Shape::Number),
                ]),
            ),
            Optional(
                "hugepages",
                Shape::Object(&[
                    Optional("defaultHugepagesSize", Shape::Text),
                    Optional("pages", Shape::List(&PAGE)),
                ]),
            ),
            Optional("kernelPageSize", Shape::Text),
            Optional("machineConfigLabel", Shape::Texts),
            Optional("machineConfigPoolSelector", Shape::Texts),
            Optional(
                "net",
                Shape::Object(&[
                    Optional("devices", Shape::List(&DEVICE)),
                    Optional("userLevelNetworking", Shape::Flag),
                ]),
            ),
            Optional("nodeSelector", Shape::Texts),
            Optional(
                "numa",
                Shape::Object(&[Optional("topologyPolicy", Shape::Text)]),
            ),
            Optional(
                "realTimeKernel",
                Shape::Object(&[Optional("enabled", Shape::Flag)]),
            ),
            Optional(
                "workloadHints",
                Shape::Object(&[
                    Optional("highPowerConsumption", Shape::Flag),
                    Optional("mixedCpus", Shape::Flag),
                    Optional("perPodPowerManagement", Shape::Flag),
                    Optional("realTime", Shape::Flag),
                ]),
            ),
        ]),
    ),
    Optional("status", Shape::Any),
]);

/// What all objects have in common.
const METADATA: Shape = Shape::Object(&[
    Optional("annotations", Shape::Texts),
    Optional("creationTimestamp", Shape::Any),
    Optional("deletionGracePeriodSeconds", Shape::Any),
    Optional("deletionTimestamp", Shape::Any),
    Optional("finalizers", Shape::Any),
    Optional("generateName", Shape::Any),
    Optional("generation", Shape::Any),
    Optional("labels", Shape::Texts),
    Optional("managedFields", Shape::Any),
    Required("name", Shape::Text),
    Optional("namespace", Shape::Text),
    Optional("ownerReferences", Shape::Any),
    Optional("resourceVersion", Shape::Any),
    Optional("selfLink", Shape::Any),
    Optional("uid", Shape::Any),
]);

static TUNED_PROFILE: Shape =
    Shape::Object(&[Required("data", Shape::Text), Required("name", Shape::Text)]);

static RECOMMEND: Shape = Shape::Object(&[
    Optional("machineConfigLabels", Shape::Texts),
    Optional("match", Shape::List(&MATCH)),
    Optional(
        "operand",
        Shape::Object(&[
            Optional("debug", Shape::Flag),
            Optional(
                "tunedConfig",
                Shape::Object(&[Optional("reapply_sysctl", Shape::Flag)]),
            ),
            Optional("verbosity", Shape::Number),
        ]),
    ),
    Required("priority", Shape::Number),
    Required("profile", Shape::Text),
]);

static MATCH: Shape = Shape::Object(&MATCH_FIELDS);
/// Matches have matches.
static MATCH_FIELDS: [Field; 4] = [
    Required("label", Shape::Text),
    Optional("match", Shape::List(&MATCH)),
    Optional("type", Shape::Text),
    Optional("value", Shape::Text),
];

static PAGE: Shape = Shape::Object(&[
    Optional("count", Shape::Number),
    Optional("node", Shape::Number),
    Required("size", Shape::Text),
]);

static DEVICE: Shape = Shape::Object(&[
    Optional("deviceID", Shape::Text),
    Optional("interfaceName", Shape::Text),
    Optional("vendorID", Shape::Text),
]);

// === impl Shape ===

impl Shape {
    /// Adds what is wrong with the value of the field at this path. Values are never quoted.
    pub(super) fn check(&self, value: &Value, path: &str, wrong: &mut Vec<String>) {
        match (self, value) {
            // As in Kubernetes, it is the same as no field.
            (_, Value::Null) => {}
            (Self::Any, _) | (Self::Text, Value::String(_)) | (Self::Flag, Value::Bool(_)) => {}
            (Self::Number, Value::Number(number)) if number.is_u64() => {}
            (Self::Texts, Value::Object(fields)) => {
                for (key, value) in fields {
                    Self::Text.check(value, &below(path, key), wrong);
                }
            }
            (Self::List(item), Value::Array(items)) => {
                for (index, value) in items.iter().enumerate() {
                    item.check(value, &format!("{path}[{index}]"), wrong);
                }
            }
            (Self::Object(known), Value::Object(fields)) => {
                for field in *known {
                    field.check(fields, path, wrong);
                }
                let unknown = fields
                    .keys()
                    .filter(|key| known.iter().all(|it| it.name() != key.as_str()));
                wrong.extend(unknown.map(|key| {
                    let known: Vec<_> = known.iter().map(Field::name).collect();
                    let (path, known) = (below(path, key), known.join(", "));
                    format!("{path} is not known: remove it, or use one of {known}")
                }));
            }
            (_, _) => wrong.push(format!("{path} has to be {}", self.form())),
        }
    }

    fn form(&self) -> &'static str {
        match self {
            Self::Text => "a text: put it in quotation marks",
            Self::Flag => "true or false",
            Self::Number => "a number that is not negative",
            Self::Texts => "a map of texts",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
            Self::Any => "a value",
        }
    }
}

// === impl Field ===

impl Field {
    fn name(&self) -> &'static str {
        match self {
            Optional(name, _) | Required(name, _) => name,
        }
    }

    /// The same for this field of an object at this path.
    fn check(&self, fields: &Map<String, Value>, path: &str, wrong: &mut Vec<String>) {
        let path = below(path, self.name());
        let value = fields.get(self.name()).filter(|it| !it.is_null());
        match (self, value) {
            (Optional(_, shape) | Required(_, shape), Some(value)) => {
                shape.check(value, &path, wrong);
            }
            (Required(..), None) => wrong.push(format!("{path} is missing: add it")),
            (Optional(..), None) => {}
        }
    }
}

/// The path of a field. Long keys are cut.
fn below(path: &str, key: &str) -> String {
    let key: String = key.chars().take(64).collect();
    if path.is_empty() {
        key
    } else {
        format!("{path}.{key}")
    }
}
