//! The body of a response to a client.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use support::shutdown::Draining;

use crate::exchange::Exchange;
use crate::gate::Busy;
use crate::upstream::{ResponseBody, ResponseBodyError};
use capi_translate::Refusal;
use capi_translate::body::Translator;

/// The body of a response.
#[derive(Debug)]
pub(crate) struct Body {
    content: Content,
    exchange: Option<Box<Exchange>>,
    /// The next request on this connection waits for the end of this response.
    _busy: Option<Busy>,
}

#[derive(Debug)]
enum Content {
    Whole(Option<Bytes>),
    Stream(Box<Stream>),
}

/// A body that is streamed.
pub(crate) struct Stream {
    body: ResponseBody,
    translator: Option<Box<Translator>>,
    /// Bytes that are translated already.
    begun: Bytes,
    /// For watches, which end when the proxy shuts down.
    draining: Option<Draining>,
    /// Whether the last byte that was sent completed an event.
    between_events: bool,
    ended: bool,
    /// Why the body is truncated, and whether earlier bytes were flushed.
    cut: Option<Cut>,
    flushed: bool,
}

/// The body is truncated: its first bytes were sent, and the rest cannot be.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Cut {
    #[error(transparent)]
    ResponseBody(#[from] ResponseBodyError),
    #[error("the response of the API server cannot be translated")]
    Translation(#[source] Refusal),
}

// === impl Body ===

impl Body {
    /// A complete body.
    pub(crate) fn full(bytes: Bytes) -> Self {
        Self::new(Content::Whole(
            Some(bytes).filter(|bytes| !bytes.is_empty()),
        ))
    }

    /// No body.
    pub(crate) fn empty() -> Self {
        Self::new(Content::Whole(None))
    }

    /// A streamed body.
    pub(crate) fn stream(stream: Stream) -> Self {
        Self::new(Content::Stream(Box::new(stream)))
    }

    fn new(content: Content) -> Self {
        Self {
            content,
            exchange: None,
            _busy: None,
        }
    }

    /// Drops these at the end of the body.
    #[must_use]
    pub(crate) fn carrying(self, exchange: Exchange, busy: Busy) -> Self {
        Self {
            exchange: Some(Box::new(exchange)),
            _busy: Some(busy),
            ..self
        }
    }

    /// Ends the body after a complete event when the proxy shuts down.
    #[must_use]
    pub(crate) fn until(mut self, draining: Draining) -> Self {
        if let Content::Stream(stream) = &mut self.content {
            stream.draining = Some(draining);
        }
        self
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let this = self.get_mut();
        let stream = match &mut this.content {
            Content::Whole(bytes) => {
                return Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes))));
            }
            Content::Stream(stream) => stream,
        };
        let frame = ready!(stream.poll_frame(cx, this.exchange.as_deref_mut()));
        if let (Some(Err(cut)), Some(exchange)) = (&frame, &mut this.exchange) {
            exchange.cut(cut);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Whole(bytes) => bytes.is_none(),
            Content::Stream(stream) => stream.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Content::Stream(stream) if stream.translator.is_none() => stream.body.size_hint(),
            Content::Stream(_) => SizeHint::default(),
        }
    }
}

// === impl Stream ===

impl Stream {
    /// Forwards the bytes of the API server.
    pub(crate) fn pass(body: ResponseBody) -> Self {
        Self::new(body, None, Bytes::new())
    }

    /// Translates the bytes of the API server; `begun` is translated already.
    pub(crate) fn translate(body: ResponseBody, translator: Box<Translator>, begun: Bytes) -> Self {
        Self::new(body, Some(translator), begun)
    }

    fn new(body: ResponseBody, translator: Option<Box<Translator>>, begun: Bytes) -> Self {
        Self {
            body,
            translator,
            begun,
            draining: None,
            between_events: true,
            ended: false,
            cut: None,
            flushed: false,
        }
    }

    fn is_end_stream(&self) -> bool {
        match self.translator {
            Some(_) => self.ended && self.cut.is_none(),
            None => self.body.is_end_stream(),
        }
    }

    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
        mut exchange: Option<&mut Exchange>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        if !self.begun.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.begun)))));
        }
        loop {
            if self.cut.is_some() {
                return self.poll_cut(cx);
            }
            if self.ended || self.must_end(cx) {
                return Poll::Ready(None);
            }
            let taken = match ready!(self.body.poll_frame(cx)) {
                Some(Ok(frame)) => Ok(self.take(frame, exchange.as_deref_mut())),
                Some(Err(error)) => Err(error.into()),
                None => {
                    self.ended = true;
                    self.finish(exchange.as_deref_mut())
                }
            };
            match taken {
                Ok(Some(frame)) => return Poll::Ready(Some(Ok(frame))),
                Ok(None) => {}
                Err(cut) => self.cut = Some(cut),
            }
        }
    }

    /// Fails after earlier bytes were flushed.
    fn poll_cut(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        if !self.flushed {
            self.flushed = true;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.ended = true;
        Poll::Ready(self.cut.take().map(Err))
    }

    /// Whether the watch ends here, because the proxy is shutting down.
    fn must_end(&mut self, cx: &mut Context<'_>) -> bool {
        let between_events = self.between_events;
        self.draining
            .as_mut()
            .is_some_and(|draining| draining.poll(cx).is_ready() && between_events)
    }

    /// Translates a frame; the output may be empty.
    fn take(
        &mut self,
        frame: Frame<Bytes>,
        exchange: Option<&mut Exchange>,
    ) -> Option<Frame<Bytes>> {
        let (Some(translator), true) = (&mut self.translator, frame.is_data()) else {
            return Some(frame);
        };
        let data = frame.into_data().unwrap_or_default();
        let mut out = Vec::with_capacity(data.len() + data.len() / 8);
        let pushed = match exchange {
            Some(exchange) => exchange.time(|| translator.push(&data, &mut out)),
            None => translator.push(&data, &mut out),
        };
        if let Err(refusal) = pushed {
            self.cut = Some(Cut::Translation(refusal));
            return None;
        }
        self.between_events = *out.last()? == b'\n';
        Some(Frame::data(Bytes::from(out)))
    }

    fn finish(&mut self, exchange: Option<&mut Exchange>) -> Result<Option<Frame<Bytes>>, Cut> {
        let Some(translator) = &mut self.translator else {
            return Ok(None);
        };
        let mut out = Vec::new();
        translator.finish(&mut out).map_err(Cut::Translation)?;
        if let Some(exchange) = exchange {
            exchange.count_names(translator.counts());
        }
        Ok((!out.is_empty()).then(|| Frame::data(Bytes::from(out))))
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}
