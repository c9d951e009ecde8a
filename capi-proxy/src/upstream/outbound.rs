//! A request for the API server.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{AUTHORIZATION, HOST};
use http::uri::{PathAndQuery, Uri};
use http::{HeaderMap, HeaderValue, Method, Request};
use http_body::{Body, Frame, SizeHint};

use crate::credentials::{Identity, Session};
use crate::layer::request_body::RequestStream;

/// Whose credentials a request uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Authorization {
    /// The proxy's.
    Ours,
    /// The client's own, in the headers.
    Client,
}

/// Which connections a request may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Unary,
    Watch,
}

/// A request without the parts that depend on the credentials: address, `Host` and token.
#[derive(Debug)]
pub(crate) struct Outbound {
    pub(crate) method: Method,
    pub(crate) path: PathAndQuery,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Outgoing,
    pub(crate) class: Class,
    pub(crate) authorization: Authorization,
}

/// The body of a request.
#[derive(Debug)]
pub(crate) enum Outgoing {
    Empty,
    /// A complete body; `None` once it is sent.
    Whole(Option<Bytes>),
    /// A streamed body.
    Stream(Box<RequestStream>),
}

// === impl Outbound ===

impl Outbound {
    /// A copy of the request for a retry, unless its body has been sent in part.
    pub(super) fn replay(&self) -> Option<Self> {
        Some(Self {
            method: self.method.clone(),
            path: self.path.clone(),
            headers: self.headers.clone(),
            body: self.body.replay()?,
            class: self.class,
            authorization: self.authorization,
        })
    }

    /// Which connections to use. Our certificate would take precedence over the credentials of the client.
    pub(super) fn identity(&self, session: &Session) -> Identity {
        let has_certificate = session
            .tls
            .as_ref()
            .is_some_and(|tls| tls.has_certificate());
        match self.authorization {
            Authorization::Client if has_certificate => Identity::Bare,
            Authorization::Client | Authorization::Ours => Identity::Ours,
        }
    }

    /// The request for an HTTP/1.1 connection.
    pub(super) fn into_http1(mut self, session: &Session) -> Request<Outgoing> {
        let host = HeaderValue::from_str(session.endpoint.authority.as_str());
        self.headers.insert(
            HOST,
            host.expect("invariant: an authority is a header value"),
        );
        self.authorize(session);
        let mut request = Request::new(self.body);
        *request.method_mut() = self.method;
        *request.uri_mut() = prefixed(session, self.path).into();
        *request.headers_mut() = self.headers;
        request
    }

    /// The request for an HTTP/2 connection; it has no body.
    pub(super) fn into_http2(mut self, session: &Session) -> Request<()> {
        self.headers.remove(HOST);
        self.authorize(session);
        let uri = Uri::builder()
            .scheme(session.endpoint.scheme.clone())
            .authority(session.endpoint.authority.clone())
            .path_and_query(prefixed(session, self.path))
            .build();
        let mut request = Request::new(());
        *request.method_mut() = self.method;
        *request.uri_mut() = uri.expect("invariant: the parts of the address are valid");
        *request.headers_mut() = self.headers;
        *request.version_mut() = http::Version::HTTP_2;
        request
    }

    fn authorize(&mut self, session: &Session) {
        if let (Authorization::Ours, Some(token)) = (self.authorization, &session.token) {
            self.headers.insert(AUTHORIZATION, token.header().clone());
        }
    }
}

/// The same request once more, unless its body is already on its way.
pub(super) fn replay_http1(request: &Request<Outgoing>) -> Option<Request<Outgoing>> {
    let mut again = Request::new(request.body().replay()?);
    request.method().clone_into(again.method_mut());
    request.uri().clone_into(again.uri_mut());
    request.headers().clone_into(again.headers_mut());
    Some(again)
}

fn prefixed(session: &Session, path: PathAndQuery) -> PathAndQuery {
    if session.endpoint.prefix.is_empty() {
        return path;
    }
    let prefixed = format!("{}{path}", session.endpoint.prefix);
    PathAndQuery::try_from(prefixed).expect("invariant: a path behind a path is a path")
}

// === impl Outgoing ===

impl Outgoing {
    fn replay(&self) -> Option<Self> {
        match self {
            Self::Empty => Some(Self::Empty),
            Self::Whole(Some(bytes)) => Some(Self::Whole(Some(bytes.clone()))),
            Self::Whole(None) | Self::Stream(_) => None,
        }
    }
}

/// The body could not be sent completely. The client gets the reason, the API server does not.
#[derive(Debug, thiserror::Error)]
#[error("the request body was interrupted")]
pub(crate) struct BrokenOff;

impl Body for Outgoing {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        match self.get_mut() {
            Self::Empty => Poll::Ready(None),
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Stream(stream) => stream
                .poll_chunk(cx)
                .map(|chunk| chunk.map(|chunk| chunk.map(Frame::data))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty | Self::Whole(None) => true,
            Self::Whole(Some(bytes)) => bytes.is_empty(),
            Self::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty | Self::Whole(None) => SizeHint::with_exact(0),
            Self::Whole(Some(bytes)) => SizeHint::with_exact(bytes.len() as u64),
            Self::Stream(stream) => stream
                .size()
                .map_or_else(SizeHint::default, SizeHint::with_exact),
        }
    }
}
