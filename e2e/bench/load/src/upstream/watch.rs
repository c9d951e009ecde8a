//! A watch: a bookmark at once, then stamped events on a schedule.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use crate::clock;
use crate::fixture::{Event, Fixture};

/// The events of one watch. It ends after the last event; without events it stays open.
#[derive(Debug)]
pub(super) struct WatchBody {
    bookmark: Option<Bytes>,
    event: Event,
    left: Option<u64>,
    ticks: Interval,
}

// === impl WatchBody ===

impl WatchBody {
    /// A watch of so many events, or of none at all and without an end.
    pub(super) fn new(fixture: &Fixture, events: u64, interval: Duration) -> Self {
        let mut ticks = interval_at(Instant::now() + interval, interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            bookmark: Some(fixture.bookmark()),
            event: fixture.event(),
            left: (events > 0).then_some(events),
            ticks,
        }
    }
}

impl Body for WatchBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        if let Some(bookmark) = this.bookmark.take() {
            return Poll::Ready(Some(Ok(Frame::data(bookmark))));
        }
        match this.left {
            None => Poll::Pending,
            Some(0) => Poll::Ready(None),
            Some(left) => {
                ready!(this.ticks.poll_tick(cx));
                this.left = Some(left - 1);
                Poll::Ready(Some(Ok(Frame::data(this.event.stamped(clock::now())))))
            }
        }
    }
}
