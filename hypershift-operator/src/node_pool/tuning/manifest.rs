//! One manifest of a pool's tuning: parsed strictly, and normalized to the form that the tuning operator gets.

use serde_json::Value;

use super::{profile, schema};
use crate::canonical;
use crate::node_pool::manifest::documents;

/// The supported kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Tuned,
    PerformanceProfile,
}

/// A valid manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Manifest {
    pub(super) kind: Kind,
    pub(super) name: String,
    /// YAML with a line break at the end.
    pub(super) text: String,
}

// === impl Kind ===

impl Kind {
    const ALL: [Self; 2] = [Self::Tuned, Self::PerformanceProfile];

    fn as_str(self) -> &'static str {
        match self {
            Self::Tuned => "Tuned",
            Self::PerformanceProfile => "PerformanceProfile",
        }
    }

    fn api_version(self) -> &'static str {
        match self {
            Self::Tuned => "tuned.openshift.io/v1",
            Self::PerformanceProfile => "performance.openshift.io/v2",
        }
    }

    fn schema(self) -> &'static schema::Shape {
        match self {
            Self::Tuned => &schema::TUNED,
            Self::PerformanceProfile => &schema::PERFORMANCE_PROFILE,
        }
    }
}

// === impl Manifest ===

impl Manifest {
    /// Splits a text into manifests. An error has all problems.
    pub(super) fn read(text: &str) -> Result<Vec<Self>, Vec<String>> {
        let documents = documents(text).map_err(|error| vec![error.to_string()])?;
        if documents.is_empty() {
            return Err(vec![
                "it has no manifest: add a Tuned or a PerformanceProfile".to_owned(),
            ]);
        }
        let (mut manifests, mut wrong) = (Vec::new(), Vec::new());
        for (number, object) in &documents {
            match Self::parse(*number, object) {
                Ok(manifest) => manifests.push(manifest),
                Err(errors) => wrong.extend(errors),
            }
        }
        if wrong.is_empty() {
            Ok(manifests)
        } else {
            Err(wrong)
        }
    }

    fn parse(number: usize, object: &Value) -> Result<Self, Vec<String>> {
        let word = |pointer: &str| {
            let found = object.pointer(pointer).and_then(Value::as_str);
            found.unwrap_or_default()
        };
        let (api_version, kind) = (word("/apiVersion"), word("/kind"));
        let mut kinds = Kind::ALL.into_iter();
        let known = kinds.find(|it| (it.as_str(), it.api_version()) == (kind, api_version));
        let Some(known) = known else {
            return Err(vec![format!(
                "document {number} is of kind {kind:?} in {api_version:?}, which is not supported as tuning: use Tuned \
                 of {}, or PerformanceProfile of {}",
                Kind::Tuned.api_version(),
                Kind::PerformanceProfile.api_version()
            )]);
        };
        let name = word("/metadata/name");
        if name.is_empty() {
            return Err(vec![format!(
                "document {number}, a {kind}, has no metadata.name: add it"
            )]);
        }
        let mut wrong = Vec::new();
        known.schema().check(object, "", &mut wrong);
        // What has the wrong form has no values to check.
        if wrong.is_empty() && known == Kind::PerformanceProfile {
            profile::check(&object["spec"], &mut wrong);
        }
        if !wrong.is_empty() {
            let wrong = wrong.into_iter();
            return Err(wrong.map(|it| format!("{kind} {name}: {it}")).collect());
        }
        let text = text(object).map_err(|error| vec![format!("{kind} {name}: {error}")])?;
        Ok(Self {
            kind: known,
            name: name.to_owned(),
            text,
        })
    }
}

/// The manifest without what a cluster adds to it, and with the `creationTimestamp` that the tuning operator has always been
/// given.
fn text(object: &Value) -> Result<String, String> {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    object["metadata"]["creationTimestamp"] = Value::Null;
    let text = serde_saphyr::to_string(&canonical::sorted(&object));
    let mut text = text.map_err(|error| {
        format!("it cannot be written as YAML ({error}): change the texts in it")
    })?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}
