//! Deadlines of requests to an API server: none waits for an answer without limit.
//!
//! A request whose answer is lost, because packets of its connection are dropped after it has left, ends after its
//! deadline with [`TimedOut`]. Its connection is closed, so that the next request opens another one.
//!
//! | request | head of the answer | body of the answer |
//! |---|---|---|
//! | write | [`Timeouts::write`] for both | |
//! | read | [`Timeouts::head`] | [`Timeouts::body`] |
//! | watch | [`Timeouts::head`] | `timeoutSeconds` of the request and [`Timeouts::body`] |
//! | other stream | [`Timeouts::head`] | none |

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until, timeout_at};
use tower::{BoxError, Layer, Service};

/// Limits of requests by what they do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// A write, from the first byte of the request to the last of the answer. An API server gives admission webhooks
    /// at most 30 seconds.
    pub write: Duration,
    /// A read or a watch, to the head of the answer. API servers send it at once.
    pub head: Duration,
    /// The body of the answer to a read. API servers cut off a request that takes longer.
    pub body: Duration,
}

/// A request did not end before its deadline. Whether a write has taken effect is not known.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{method} {path} timed out: no complete answer from the API server within {limit:?}")]
pub struct TimedOut {
    method: Method,
    path: String,
    limit: Duration,
}

/// Adds deadlines to the requests of a client.
#[derive(Debug, Clone, Copy)]
pub struct Deadlines(Timeouts);

/// A service with [`Deadlines`].
#[derive(Debug, Clone)]
pub struct Limited<S> {
    inner: S,
    timeouts: Timeouts,
}

/// A body with a deadline.
#[derive(Debug)]
pub struct LimitedBody<B> {
    inner: B,
    deadline: Option<(Pin<Box<Sleep>>, TimedOut)>,
}

/// The limits of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Limits {
    head: Duration,
    /// From the beginning of the request.
    whole: Option<Duration>,
}

// === impl Timeouts ===

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            write: Duration::from_secs(35),
            head: Duration::from_secs(30),
            body: Duration::from_mins(1),
        }
    }
}

impl Timeouts {
    fn limits<B>(self, request: &Request<B>) -> Limits {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return Limits {
                head: self.write,
                whole: Some(self.write),
            };
        }
        let body = match Stream::of(request.uri().query().unwrap_or_default()) {
            Stream::None => Some(self.body),
            Stream::Watch(seconds) => {
                seconds.map(|seconds| Duration::from_secs(seconds) + self.body)
            }
            Stream::Log => None,
        };
        Limits {
            head: self.head,
            whole: body.map(|body| self.head + body),
        }
    }
}

/// How long the body of an answer may last by intention.
enum Stream {
    None,
    /// A watch, with the seconds after which the server is asked to end it.
    Watch(Option<u64>),
    Log,
}

// === impl Stream ===

impl Stream {
    fn of(query: &str) -> Self {
        let pairs = || query.split('&').filter_map(|pair| pair.split_once('='));
        let is_set = |name| pairs().any(|(key, value)| key == name && is_true(value));
        if is_set("watch") {
            let seconds = pairs().find(|(key, _)| *key == "timeoutSeconds");
            return Self::Watch(seconds.and_then(|(_, value)| value.parse().ok()));
        }
        if is_set("follow") {
            return Self::Log;
        }
        Self::None
    }
}

fn is_true(value: &str) -> bool {
    matches!(value, "true" | "1")
}

// === impl Deadlines ===

impl Deadlines {
    /// Adds these deadlines.
    pub fn new(timeouts: Timeouts) -> Self {
        Self(timeouts)
    }
}

impl<S> Layer<S> for Deadlines {
    type Service = Limited<S>;

    fn layer(&self, inner: S) -> Limited<S> {
        Limited {
            inner,
            timeouts: self.0,
        }
    }
}

// === impl Limited ===

impl<S, A, B> Service<Request<A>> for Limited<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    type Response = Response<LimitedBody<B>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let limits = self.timeouts.limits(&request);
        let timed_out = |limit| TimedOut {
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
            limit,
        };
        let late = timed_out(limits.head);
        let late_body = limits.whole.map(|limit| (limit, timed_out(limit)));
        let begun = Instant::now();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let Ok(answer) = timeout_at(begun + limits.head, answer).await else {
                return Err(late.into());
            };
            let answer = answer.map_err(Into::into)?;
            Ok(answer.map(|inner| LimitedBody {
                inner,
                deadline: late_body
                    .map(|(limit, error)| (Box::pin(sleep_until(begun + limit)), error)),
            }))
        })
    }
}

// === impl LimitedBody ===

impl<B> Body for LimitedBody<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some((deadline, error)) = &mut self.deadline
            && deadline.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(Some(Err(error.clone().into())));
        }
        let frame = Pin::new(&mut self.inner).poll_frame(cx);
        frame.map(|frame| frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_depend_on_what_a_request_does() {
        let timeouts = Timeouts::default();
        let whole = |method: Method, uri: &str| {
            let request = Request::builder().method(method).uri(uri).body(());
            timeouts.limits(&request.unwrap()).whole
        };
        let read = timeouts.head + timeouts.body;
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            assert_eq!(
                whole(method, "/api/v1/pods?watch=true"),
                Some(timeouts.write)
            );
        }
        for (uri, expected) in [
            ("/api/v1/pods", Some(read)),
            ("/api/v1/pods?limit=500&watch=false", Some(read)),
            (
                "/api/v1/pods?watch=true&timeoutSeconds=290",
                Some(read + Duration::from_secs(290)),
            ),
            ("/api/v1/pods?watch=1", None),
            ("/api/v1/namespaces/a/pods/b/log?follow=true", None),
        ] {
            assert_eq!(whole(Method::GET, uri), expected, "{uri}");
        }
    }
}
