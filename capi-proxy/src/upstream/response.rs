//! The body of a response of the API server, and the connection that is released at its end.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::{http1, http2};

/// A response body. Dropping it before its end closes the stream to the API server.
#[derive(Debug)]
pub(crate) enum ResponseBody {
    Http1 {
        body: Incoming,
        ended: bool,
        connection: Option<http1::Connection>,
    },
    Http2 {
        body: h2::RecvStream,
        ended: bool,
        _permit: http2::StreamPermit,
    },
}

/// The body was interrupted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ResponseBodyError {
    #[error("the response of the API server was interrupted")]
    Http1(#[source] hyper::Error),
    #[error("the response of the API server was interrupted")]
    Http2(#[source] h2::Error),
}

// === impl ResponseBody ===

impl ResponseBody {
    pub(super) fn http1(body: Incoming, connection: http1::Connection) -> Self {
        Self::Http1 {
            body,
            ended: false,
            connection: Some(connection),
        }
    }

    /// The body of a response on a connection that is not reused.
    pub(crate) fn lone(body: Incoming) -> Self {
        Self::Http1 {
            body,
            ended: false,
            connection: None,
        }
    }

    pub(super) fn http2(body: h2::RecvStream, permit: http2::StreamPermit) -> Self {
        Self::Http2 {
            body,
            ended: false,
            _permit: permit,
        }
    }

    /// The next frame.
    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ResponseBodyError>>> {
        match self {
            Self::Http1 { body, ended, .. } => {
                let frame = ready!(Pin::new(body).poll_frame(cx));
                *ended = frame.is_none();
                Poll::Ready(frame.map(|frame| frame.map_err(ResponseBodyError::Http1)))
            }
            Self::Http2 { body, ended, .. } => {
                let frame = ready!(poll_http2(body, *ended, cx));
                *ended = !matches!(&frame, Some(Ok(frame)) if frame.is_data());
                Poll::Ready(frame.map(|frame| frame.map_err(ResponseBodyError::Http2)))
            }
        }
    }

    /// The next frame.
    pub(crate) async fn frame(&mut self) -> Option<Result<Frame<Bytes>, ResponseBodyError>> {
        std::future::poll_fn(|cx| self.poll_frame(cx)).await
    }

    /// Whether the body has ended.
    pub(crate) fn is_end_stream(&self) -> bool {
        match self {
            Self::Http1 { body, ended, .. } => *ended || body.is_end_stream(),
            Self::Http2 { body, ended, .. } => *ended || body.is_end_stream(),
        }
    }

    /// The remaining length, if known.
    pub(crate) fn size_hint(&self) -> SizeHint {
        match self {
            Self::Http1 { body, .. } => body.size_hint(),
            Self::Http2 { .. } => SizeHint::default(),
        }
    }
}

fn poll_http2(
    body: &mut h2::RecvStream,
    ended: bool,
    cx: &mut Context<'_>,
) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
    if ended {
        return Poll::Ready(None);
    }
    match ready!(body.poll_data(cx)) {
        Some(Ok(data)) => {
            // Polled only when the client can take more, so this is flow control by the client.
            let released = body.flow_control().release_capacity(data.len());
            Poll::Ready(Some(released.map(|()| Frame::data(data))))
        }
        Some(Err(error)) => Poll::Ready(Some(Err(error))),
        None => body.poll_trailers(cx).map(|trailers| {
            trailers
                .transpose()
                .map(|trailers| trailers.map(Frame::trailers))
        }),
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        let ended = self.is_end_stream();
        if let Self::Http1 { connection, .. } = self
            && ended
            && let Some(connection) = connection.take()
        {
            connection.release();
        }
    }
}
