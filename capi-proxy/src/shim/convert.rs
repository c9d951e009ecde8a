//! Converts one review: translates, calls the backend through [`Ask`], translates back, validates.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::check::check;
use super::object::{Object, group};
use super::review::{self, InvalidReview, Request, Response};
use super::route::{BackendId, Routes};
use super::swap;
use capi_translate::Rules;

/// Access to the backends.
pub(crate) trait Ask: Sync {
    /// The response of the backend to a review.
    fn ask(
        &self,
        backend: BackendId,
        question: Bytes,
    ) -> impl Future<Output = Result<Bytes, BackendError>> + Send;
}

/// A backend did not respond.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the conversion backend at {backend} {problem}")]
pub(crate) struct BackendError {
    pub(crate) backend: String,
    pub(crate) problem: String,
}

/// The response to a review.
#[derive(Debug)]
pub(crate) struct Reviewed {
    /// Its body.
    pub(crate) body: Vec<u8>,
    pub(crate) result: Result<Converted, Failure>,
}

/// How many objects were converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Converted(pub(crate) usize);

/// Why nothing was converted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    /// An object cannot be converted; the message names it.
    #[error("{0}")]
    Object(String),
    /// The backend is unreachable, or its response is invalid.
    #[error("{0}")]
    Backend(String),
}

/// The parts that are the same for all reviews.
#[derive(Debug)]
pub(crate) struct Converter<A> {
    pub(crate) rules: Rules,
    pub(crate) routes: Routes,
    pub(crate) ask: A,
}

/// The parts that are the same for all batches of a backend.
#[derive(Debug, Clone, Copy)]
struct Question<'r> {
    backend: BackendId,
    uid: &'r str,
    /// Under the private name, as the API server wrote it.
    desired: &'r str,
}

// === impl Converter ===

impl<A: Ask> Converter<A> {
    /// Converts the objects of a review; an invalid review is an error.
    pub(crate) async fn respond(&self, body: &[u8]) -> Result<Reviewed, InvalidReview> {
        let request = Request::read(body)?;
        let (body, result) = match self.convert(&request).await {
            Ok(objects) => {
                let pieces = objects.iter().map(Vec::as_slice);
                let count = Converted(objects.len());
                (review::success(&request.uid, pieces), Ok(count))
            }
            Err(failure) => {
                let message = failure.to_string();
                (review::failure(&request.uid, &message), Err(failure))
            }
        };
        Ok(Reviewed { body, result })
    }

    /// All objects in the desired version, in their order.
    async fn convert(&self, request: &Request<'_>) -> Result<Vec<Vec<u8>>, Failure> {
        let objects = read(request)?;
        let mut done: Vec<Vec<u8>> = vec![Vec::new(); objects.len()];
        let mut due: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (index, object) in objects.iter().enumerate() {
            if object.name.api_version == request.desired {
                // Backends reject objects that need no conversion.
                done[index] = object.bytes.as_bytes().to_vec();
            } else {
                let BackendId(backend) = self.route(object, &request.desired)?;
                due.entry(backend).or_default().push(index);
            }
        }
        for (backend, indices) in due {
            let question = Question {
                backend: BackendId(backend),
                uid: &request.uid,
                desired: &request.desired,
            };
            let batch: Vec<&Object<'_>> = indices.iter().map(|&index| &objects[index]).collect();
            for (index, converted) in indices.iter().zip(self.batch(question, &batch).await?) {
                done[*index] = converted;
            }
        }
        Ok(done)
    }

    fn route(&self, object: &Object<'_>, desired: &str) -> Result<BackendId, Failure> {
        let name = &object.name;
        if name.group() != group(desired) {
            let message = format!("{name}: its group is not the one of {desired}");
            return Err(Failure::Object(message));
        }
        self.routes.find(name.group(), &name.kind).ok_or_else(|| {
            Failure::Object(format!(
                "{name}: no backend converts kind {} of {}; add a --backend for it",
                name.kind,
                name.group()
            ))
        })
    }

    /// Converts a batch; if the backend cannot, finds the object that it cannot convert.
    async fn batch(
        &self,
        question: Question<'_>,
        objects: &[&Object<'_>],
    ) -> Result<Vec<Vec<u8>>, Failure> {
        let refused = match self.once(question, objects).await {
            Ok(converted) => return Ok(converted),
            Err(Refused::Failure(failure)) => return Err(failure),
            Err(Refused::Batch(message)) => message,
        };
        let (mut low, mut high) = (0, objects.len());
        // The first object that fails is in `low..high`.
        while high - low > 1 {
            let middle = low.midpoint(high);
            match self.once(question, &objects[low..middle]).await {
                Ok(_) => low = middle,
                Err(Refused::Batch(_)) => high = middle,
                Err(Refused::Failure(failure)) => return Err(failure),
            }
        }
        // It may have become convertible in the meantime.
        match self.once(question, &objects[low..high]).await {
            Ok(_) => Err(Failure::Backend(refused)),
            Err(Refused::Failure(failure)) => Err(failure),
            Err(Refused::Batch(message)) => {
                let object = objects.get(low).map(|object| object.name.to_string());
                let object = object.unwrap_or_default();
                Err(Failure::Object(format!("{object}: {message}")))
            }
        }
    }

    /// Sends one request.
    async fn once(
        &self,
        question: Question<'_>,
        objects: &[&Object<'_>],
    ) -> Result<Vec<Vec<u8>>, Refused> {
        let review = self.question(question, objects)?;
        let response = self.ask.ask(question.backend, review.into()).await;
        let response = response.map_err(|error| Failure::Backend(error.to_string()))?;
        self.read_response(question, objects, &response)
    }

    fn question(
        &self,
        question: Question<'_>,
        objects: &[&Object<'_>],
    ) -> Result<Vec<u8>, Failure> {
        let mut swapped = Vec::with_capacity(objects.len());
        for object in objects {
            let mut out = Vec::with_capacity(object.bytes.len());
            swap::object(&self.rules, &object.name.kind, object.bytes, &mut out)
                .map_err(|refusal| Failure::Object(format!("{}: {refusal}", object.name)))?;
            swapped.push(out);
        }
        let desired = swap::api_version(&self.rules, question.desired);
        Ok(review::question(question.uid, &desired, &swapped))
    }

    fn read_response(
        &self,
        question: Question<'_>,
        objects: &[&Object<'_>],
        response: &[u8],
    ) -> Result<Vec<Vec<u8>>, Refused> {
        let useless = |problem: String| {
            Failure::Backend(format!("invalid response of the backend: {problem}"))
        };
        let response = Response::read(response).map_err(|error| useless(error.to_string()))?;
        if response.uid != question.uid {
            return Err(useless("uid of another review".to_owned()).into());
        }
        if let Some(message) = response.result.failure() {
            return Err(Refused::Batch(message.to_owned()));
        }
        let converted = response.converted_objects.unwrap_or_default();
        if converted.len() != objects.len() {
            let problem = format!("{} objects instead of {}", converted.len(), objects.len());
            return Err(useless(problem).into());
        }
        let pairs = objects.iter().zip(converted);
        pairs
            .map(|(object, converted)| {
                self.accept(object, converted.get(), question.desired)
                    .map_err(|problem| Failure::Object(format!("{}: {problem}", object.name)))
            })
            .collect::<Result<_, _>>()
            .map_err(Refused::from)
    }

    /// A converted object with private names, if it is valid.
    fn accept(
        &self,
        original: &Object<'_>,
        converted: &str,
        desired: &str,
    ) -> Result<Vec<u8>, String> {
        let mut out = Vec::with_capacity(converted.len());
        swap::object(&self.rules, &original.name.kind, converted, &mut out)
            .map_err(|refusal| refusal.to_string())?;
        let text = std::str::from_utf8(&out).map_err(|error| error.to_string())?;
        let found = Object::read(text).map_err(|error| error.to_string())?;
        check(original, &found, desired).map_err(|breach| breach.to_string())?;
        Ok(out)
    }
}

/// Why the response of a backend has no objects.
enum Refused {
    /// It could not convert one of them; which one is unknown.
    Batch(String),
    /// Smaller batches would not help.
    Failure(Failure),
}

// === impl Refused ===

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

fn read<'a>(request: &Request<'a>) -> Result<Vec<Object<'a>>, Failure> {
    let objects = request.objects.iter().enumerate();
    objects
        .map(|(index, object)| {
            Object::read(object.get())
                .map_err(|error| Failure::Object(format!("object {index} of the review: {error}")))
        })
        .collect()
}
