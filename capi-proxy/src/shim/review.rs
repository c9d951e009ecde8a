//! Reads and writes `ConversionReview`s. Pure.

use std::fmt;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// The supported version of reviews.
const API_VERSION: &str = "apiextensions.k8s.io/v1";
const KIND: &str = "ConversionReview";
/// Maximum number of objects in a review. Bookkeeping for each is larger than the smallest object.
const MAX_OBJECTS: usize = 200_000;

/// The request of the API server.
#[derive(Debug, Deserialize)]
pub(crate) struct Request<'a> {
    /// Returned in the response.
    pub(crate) uid: String,
    /// The API version to convert to.
    #[serde(rename = "desiredAPIVersion")]
    pub(crate) desired: String,
    #[serde(borrow, default, deserialize_with = "bounded")]
    pub(crate) objects: Vec<&'a RawValue>,
}

/// The response of a backend.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Response<'a> {
    pub(crate) uid: String,
    #[serde(borrow, default)]
    pub(crate) converted_objects: Option<Vec<&'a RawValue>>,
    pub(crate) result: Outcome,
}

/// The result in a `metav1.Status`.
#[derive(Debug, Deserialize)]
pub(crate) struct Outcome {
    #[serde(default)]
    status: String,
    #[serde(default)]
    message: String,
}

/// The review is invalid. The error contains no part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidReview {
    #[error("not a ConversionReview of {API_VERSION}")]
    Kind,
    #[error("invalid JSON of a ConversionReview at line {line} column {column}")]
    Json { line: usize, column: usize },
    #[error("the review has no request")]
    NoRequest,
    #[error("the review has no response")]
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
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, InvalidReview> {
        Envelope::read(bytes)?
            .request
            .ok_or(InvalidReview::NoRequest)
    }
}

// === impl Response ===

impl<'a> Response<'a> {
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, InvalidReview> {
        Envelope::read(bytes)?
            .response
            .ok_or(InvalidReview::NoResponse)
    }
}

// === impl Outcome ===

impl Outcome {
    /// The message of a failure.
    pub(crate) fn failure(&self) -> Option<&str> {
        match (self.status.as_str(), self.message.as_str()) {
            ("Success", _) => None,
            (_, "") => Some("the backend gave no reason"),
            (_, message) => Some(message),
        }
    }
}

// === impl Envelope ===

impl<'a> Envelope<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, InvalidReview> {
        let envelope: Self =
            serde_json::from_slice(bytes).map_err(|error| InvalidReview::Json {
                line: error.line(),
                column: error.column(),
            })?;
        if envelope.api_version != API_VERSION || envelope.kind != KIND {
            return Err(InvalidReview::Kind);
        }
        Ok(envelope)
    }
}

/// Reads a list of objects up to the limit for which memory is reserved.
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

/// A review for a backend; `objects` are JSON.
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

/// A successful response to the API server; `objects` are JSON.
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

/// A failure response.
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

/// The first part of a review, with capacity for `capacity` more bytes.
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
        assert!(matches!(more, Some(InvalidReview::Json { .. })), "{more:?}");
    }
}
