//! The request body: buffered if it is small, streamed otherwise, and rejected if it cannot be translated. A rejection in
//! the middle of a stream aborts the request to the API server.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::exchange::Exchange;
use crate::failure::Failure;
use crate::gate;
use crate::layer::RequestContext;
use crate::upstream::{BrokenOff, Outgoing};
use capi_translate::Refusal;
use capi_translate::body::{self, Plan, Translator};

/// Bodies up to this size are buffered, so that they can be retried and have a length.
const SMALL: u64 = 64 * 1024;

/// The request that a body belongs to.
pub(crate) struct Request<'a> {
    pub(crate) context: RequestContext<'a>,
    pub(crate) headers: &'a HeaderMap,
    /// Maximum size of the body.
    pub(crate) limit: u64,
    /// The connection of the client.
    pub(crate) connection: &'a Arc<gate::Connection>,
}

/// A request body that has not been read. `None` if there is nothing to read.
#[derive(Debug)]
pub(crate) struct Unread(Option<Incoming>);

/// A body that is ready to be sent.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) body: Outgoing,
    /// Why sending failed, if the API server is not the cause.
    pub(crate) outcome: Option<Outcome>,
}

/// Why a stream failed, for the task that waits for the response.
pub(crate) type Outcome = Arc<OnceLock<Failure>>;

/// A streamed request body.
pub(crate) struct RequestStream {
    body: Incoming,
    translator: Option<Box<Translator>>,
    /// The length, if translation does not change it.
    size: Option<u64>,
    /// The remaining size limit.
    left: u64,
    limit: u64,
    connection: Arc<gate::Connection>,
    outcome: Outcome,
    finished: bool,
}

/// Buffers a request body or prepares its stream.
pub(crate) async fn prepare(
    request: &Request<'_>,
    unread: &mut Unread,
    exchange: &mut Exchange,
) -> Result<Prepared, Failure> {
    if unread.is_empty() {
        return Ok(Prepared {
            body: Outgoing::Empty,
            outcome: None,
        });
    }
    let mut translator = request.translator()?;
    let size = unread.size();
    if size.is_some_and(|size| size > request.limit) {
        return Err(too_large(request.limit));
    }
    let buffers = translator
        .as_ref()
        .is_some_and(|translator| translator.is_buffering());
    let Some(body) = unread.0.take() else {
        return Err(broken_off(request.connection));
    };
    if !buffers && size.is_none_or(|size| size > SMALL) {
        return Ok(request.stream(body, translator));
    }
    let bytes = request.collect(body).await?;
    let translated = match &mut translator {
        Some(translator) => exchange
            .time(|| translator.whole(&bytes))
            .map_err(Failure::refused_request)?,
        None => None,
    };
    let bytes = translated.map_or(bytes, Bytes::from);
    Ok(Prepared {
        body: Outgoing::Whole(Some(bytes)),
        outcome: None,
    })
}

// === impl Unread ===

impl Unread {
    /// The body of a new request.
    pub(crate) fn new(body: Incoming) -> Self {
        Self(Some(body).filter(|body| !body.is_end_stream()))
    }

    fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    fn size(&self) -> Option<u64> {
        self.0.as_ref().and_then(|body| body.size_hint().exact())
    }

    /// Reads and drops the rest of a rejected request, so that its connection can be reused. If that is too much, the
    /// connection is closed after the response.
    pub(crate) async fn settle(self, failure: Failure) -> Failure {
        let size = self.size();
        let Some(mut body) = self.0 else {
            return failure;
        };
        if size.is_none_or(|size| size > SMALL) {
            return failure.closing();
        }
        while let Some(frame) = body.frame().await {
            if frame.is_err() {
                return failure.closing();
            }
        }
        failure
    }
}

// === impl Request ===

impl Request<'_> {
    fn translator(&self) -> Result<Option<Box<Translator>>, Failure> {
        let content_type = self
            .headers
            .get(CONTENT_TYPE)
            .map(|value| value.to_str().unwrap_or("?"));
        let RequestContext {
            rules,
            target,
            method,
        } = self.context;
        let plan = body::request(rules, target, method, content_type);
        let Plan::Translate(translator) = plan.map_err(Failure::refused_request)? else {
            return Ok(None);
        };
        if self
            .headers
            .get_all(CONTENT_ENCODING)
            .iter()
            .any(|encoding| encoding != "identity")
        {
            let refusal = Refusal::unsupported_media_type(
                "a body with Content-Encoding cannot be translated: send it without",
            );
            return Err(Failure::refused_request(refusal));
        }
        Ok(Some(translator))
    }

    fn stream(&self, body: Incoming, translator: Option<Box<Translator>>) -> Prepared {
        let outcome = Outcome::default();
        let stream = RequestStream {
            size: body.size_hint().exact().filter(|_| translator.is_none()),
            body,
            translator,
            left: self.limit,
            limit: self.limit,
            connection: Arc::clone(self.connection),
            outcome: Arc::clone(&outcome),
            finished: false,
        };
        Prepared {
            body: Outgoing::Stream(Box::new(stream)),
            outcome: Some(outcome),
        }
    }

    async fn collect(&self, mut body: Incoming) -> Result<Bytes, Failure> {
        let mut collected = Collected::default();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| broken_off(self.connection))?;
            // The API server does not use trailers.
            let Ok(data) = frame.into_data() else {
                continue;
            };
            if collected.len() + data.len() as u64 > self.limit {
                return Err(too_large(self.limit));
            }
            collected.push(data);
        }
        Ok(collected.into_bytes())
    }
}

fn too_large(limit: u64) -> Failure {
    let refusal = Refusal::too_large(format!("the request body exceeds {limit} bytes"));
    Failure {
        translation: None,
        ..Failure::refused_request(refusal)
    }
    .closing()
}

/// Why the body of the client was interrupted.
fn broken_off(connection: &gate::Connection) -> Failure {
    match connection.violation() {
        Some(violation) => Failure::client(violation.status, violation.message.clone()).closing(),
        None => {
            Failure::client(StatusCode::BAD_REQUEST, "the request body was interrupted").closing()
        }
    }
}

// === impl RequestStream ===

impl RequestStream {
    /// The next chunk for the API server, which sees no reason of an error and no end.
    pub(crate) fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, BrokenOff>>> {
        while !self.finished {
            let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
            let chunk = match frame {
                Some(Ok(frame)) => frame.into_data().map_or(Ok(None), |data| self.take(data)),
                Some(Err(_)) => Err(broken_off(&self.connection)),
                None => self.finish(),
            };
            match chunk {
                Ok(None) => {}
                Ok(Some(chunk)) => return Poll::Ready(Some(Ok(chunk))),
                Err(failure) => {
                    self.finished = true;
                    // It is set only here.
                    let _ = self.outcome.set(failure);
                    return Poll::Ready(Some(Err(BrokenOff)));
                }
            }
        }
        Poll::Ready(None)
    }

    /// How long the body is, where that is known.
    pub(crate) fn size(&self) -> Option<u64> {
        self.size
    }

    fn take(&mut self, data: Bytes) -> Result<Option<Bytes>, Failure> {
        self.left = self
            .left
            .checked_sub(data.len() as u64)
            .ok_or_else(|| too_large(self.limit))?;
        let Some(translator) = &mut self.translator else {
            return Ok(Some(data));
        };
        let mut out = Vec::with_capacity(data.len() + 64);
        translator
            .push(&data, &mut out)
            .map_err(|refusal| Failure::refused_request(refusal).closing())?;
        Ok((!out.is_empty()).then(|| Bytes::from(out)))
    }

    fn finish(&mut self) -> Result<Option<Bytes>, Failure> {
        self.finished = true;
        let Some(translator) = &mut self.translator else {
            return Ok(None);
        };
        let mut out = Vec::new();
        translator
            .finish(&mut out)
            .map_err(Failure::refused_request)?;
        Ok((!out.is_empty()).then(|| Bytes::from(out)))
    }
}

impl fmt::Debug for RequestStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestStream")
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

/// Joins chunks; a single one is not copied.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    first: Bytes,
    rest: BytesMut,
}

// === impl Collected ===

impl Collected {
    pub(crate) fn push(&mut self, data: Bytes) {
        if self.first.is_empty() && self.rest.is_empty() {
            self.first = data;
            return;
        }
        self.rest
            .extend_from_slice(&std::mem::take(&mut self.first));
        self.rest.extend_from_slice(&data);
    }

    pub(crate) fn len(&self) -> u64 {
        (self.first.len() + self.rest.len()) as u64
    }

    pub(crate) fn into_bytes(self) -> Bytes {
        if self.rest.is_empty() {
            self.first
        } else {
            self.rest.freeze()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn body_frames_are_joined_in_order() {
        for pieces in [&[][..], &["a"], &["a", "b"], &["", "a", "", "bc", "d"]] {
            let mut collected = Collected::default();
            for piece in pieces {
                collected.push(Bytes::from_static(piece.as_bytes()));
            }
            let expected = pieces.concat();
            assert_eq!(collected.len(), expected.len() as u64);
            assert_eq!(collected.into_bytes(), expected);
        }
    }
}
