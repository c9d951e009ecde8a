//! A `ConversionReview`: read as the API server and backends write it, and written as they read it. Pure.

use std::fmt;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// The one version of reviews that is spoken.
const API_VERSION: &str = "apiextensions.k8s.io/v1";
const KIND: &str = "ConversionReview";
/// Objects in one review. What is kept of each is larger than the smallest object.
const MAX_OBJECTS: usize = 200_000;

/// What the API server asks.
#[derive(Debug, Deserialize)]
pub(crate) struct Request<'a> {
    /// Given back in the answer.
    pub(crate) uid: String,
    /// What the objects are to become.
    #[serde(rename = "desiredAPIVersion")]
    pub(crate) desired: String,
    #[serde(borrow, default, deserialize_with = "bounded")]
    pub(crate) objects: Vec<&'a RawValue>,
}

/// What a backend answers.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Response<'a> {
    pub(crate) uid: String,
    #[serde(borrow, default)]
    pub(crate) converted_objects: Option<Vec<&'a RawValue>>,
    pub(crate) result: Outcome,
}

/// The part of a `metav1.Status` that says how it went.
#[derive(Debug, Deserialize)]
pub(crate) struct Outcome {
    #[serde(default)]
    status: String,
    #[serde(default)]
    message: String,
}

/// Why something is no review. Never holds a byte of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoReview {
    #[error("it is no ConversionReview of {API_VERSION}")]
    Kind,
    #[error("it is not the JSON of a ConversionReview, from line {line} column {column} on")]
    Json { line: usize, column: usize },
    #[error("it asks nothing")]
    NoRequest,
    #[error("it answers nothing")]
    NoResponse,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(borrow, default)]
    request: Option<Request<'a>>,
    #[serde(borrow, default)]
    response: Option<Response<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Failed<'a> {
    uid: &'a str,
    result: FailedResult<'a>,
}

#[derive(Serialize)]
struct FailedResult<'a> {
    status: &'static str,
    message: &'a str,
}

// === impl Request ===

impl<'a> Request<'a> {
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, NoReview> {
        Envelope::read(bytes)?.request.ok_or(NoReview::NoRequest)
    }
}

// === impl Response ===

impl<'a> Response<'a> {
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, NoReview> {
        Envelope::read(bytes)?.response.ok_or(NoReview::NoResponse)
    }
}

// === impl Outcome ===

impl Outcome {
    /// What the backend says against it, if anything.
    pub(crate) fn failure(&self) -> Option<&str> {
        match (self.status.as_str(), self.message.as_str()) {
            ("Success", _) => None,
            (_, "") => Some("the backend does not say why"),
            (_, message) => Some(message),
        }
    }
}

// === impl Envelope ===

impl<'a> Envelope<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, NoReview> {
        let envelope: Self = serde_json::from_slice(bytes).map_err(|error| NoReview::Json {
            line: error.line(),
            column: error.column(),
        })?;
        if envelope.api_version != API_VERSION || envelope.kind != KIND {
            return Err(NoReview::Kind);
        }
        Ok(envelope)
    }
}

/// Reads a list of objects, which may not be longer than memory is reserved for.
fn bounded<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<&'de RawValue>, D::Error> {
    struct Objects;
    impl<'de> Visitor<'de> for Objects {
        type Value = Vec<&'de RawValue>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "at most {MAX_OBJECTS} objects")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
            let mut objects = Vec::new();
            while let Some(object) = items.next_element()? {
                if objects.len() == MAX_OBJECTS {
                    return Err(A::Error::invalid_length(MAX_OBJECTS + 1, &self));
                }
                objects.push(object);
            }
            Ok(objects)
        }
    }
    deserializer.deserialize_seq(Objects)
}

/// A review that asks a backend; `objects` are JSON.
pub(crate) fn question(uid: &str, desired: &str, objects: &[Vec<u8>]) -> Vec<u8> {
    let mut out = begin(objects.iter().map(Vec::len).sum());
    out.extend_from_slice(b"\"request\":{\"uid\":");
    out.extend(quoted(uid));
    out.extend_from_slice(b",\"desiredAPIVersion\":");
    out.extend(quoted(desired));
    out.extend_from_slice(b",\"objects\":[");
    join(objects.iter().map(Vec::as_slice), &mut out);
    out.extend_from_slice(b"]}}");
    out
}

/// A review that answers the API server; `objects` are JSON.
pub(crate) fn success<'o>(
    uid: &str,
    objects: impl ExactSizeIterator<Item = &'o [u8]> + Clone,
) -> Vec<u8> {
    let mut out = begin(objects.clone().map(<[u8]>::len).sum());
    out.extend_from_slice(b"\"response\":{\"uid\":");
    out.extend(quoted(uid));
    out.extend_from_slice(b",\"convertedObjects\":[");
    join(objects, &mut out);
    out.extend_from_slice(b"],\"result\":{\"status\":\"Success\"}}}");
    out
}

/// A review that says why there is nothing.
pub(crate) fn failure(uid: &str, message: &str) -> Vec<u8> {
    let failed = Failed {
        uid,
        result: FailedResult {
            status: "Failed",
            message,
        },
    };
    let mut out = begin(message.len());
    out.extend_from_slice(b"\"response\":");
    out.extend(serde_json::to_vec(&failed).expect("invariant: strings can be written"));
    out.push(b'}');
    out
}

/// The beginning of a review, with capacity for so many more bytes.
fn begin(capacity: usize) -> Vec<u8> {
    let beginning = format!("{{\"apiVersion\":\"{API_VERSION}\",\"kind\":\"{KIND}\",");
    let mut out = Vec::with_capacity(beginning.len() + capacity + capacity / 64 + 256);
    out.extend_from_slice(beginning.as_bytes());
    out
}

fn join<'o>(objects: impl Iterator<Item = &'o [u8]>, out: &mut Vec<u8>) {
    for (index, object) in objects.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(object);
    }
}

fn quoted(text: &str) -> Vec<u8> {
    serde_json::to_vec(text).expect("invariant: strings can be written")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check T06: a list of tiny values takes many times its own size.
    #[test]
    fn the_number_of_objects_is_bounded() {
        let review = |count: usize| {
            let objects = vec!["1"; count].join(",");
            let beginning = begin(0);
            let beginning = String::from_utf8(beginning).unwrap();
            format!(
                "{beginning}\"request\":{{\"uid\":\"u\",\"desiredAPIVersion\":\"v\",\"objects\":[{objects}]}}}}"
            )
        };
        let most = Request::read(review(MAX_OBJECTS).as_bytes()).map(|read| read.objects.len());
        assert_eq!(most, Ok(MAX_OBJECTS));
        let more = Request::read(review(MAX_OBJECTS + 1).as_bytes()).err();
        assert!(matches!(more, Some(NoReview::Json { .. })), "{more:?}");
    }
}
