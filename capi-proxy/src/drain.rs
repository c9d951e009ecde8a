//! How the end of the process is made known to all that must end before it.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::watch;

/// Starts the shutdown.
#[derive(Debug)]
pub(crate) struct Signal(watch::Sender<bool>);

/// Receives the start of the shutdown.
#[derive(Debug, Clone)]
pub(crate) struct Drain(watch::Receiver<bool>);

/// Becomes ready when the process is to end, and stays so.
pub(crate) struct Draining {
    waiting: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// A signal and its receiver.
pub(crate) fn channel() -> (Signal, Drain) {
    let (sender, receiver) = watch::channel(false);
    (Signal(sender), Drain(receiver))
}

// === impl Signal ===

impl Signal {
    /// Begins the shutdown.
    pub(crate) fn begin(&self) {
        self.0.send_replace(true);
    }

    /// Completes when all receivers are dropped.
    pub(crate) async fn all_ended(&self) {
        self.0.closed().await;
    }
}

// === impl Drain ===

impl Drain {
    /// Completes when the process is to end.
    pub(crate) async fn begun(&mut self) {
        // Without a sender the process is ending, too.
        let _ = self.0.wait_for(|begun| *begun).await;
    }

    /// The same as something to poll.
    pub(crate) fn draining(&self) -> Draining {
        let mut drain = self.clone();
        Draining {
            waiting: Some(Box::pin(async move { drain.begun().await })),
        }
    }
}

// === impl Draining ===

impl Draining {
    /// Ready once the process is to end.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(waiting) = &mut self.waiting else {
            return Poll::Ready(());
        };
        let begun = waiting.as_mut().poll(cx);
        if begun.is_ready() {
            self.waiting = None;
        }
        begun
    }
}

impl fmt::Debug for Draining {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Draining")
            .field("begun", &self.waiting.is_none())
            .finish()
    }
}
