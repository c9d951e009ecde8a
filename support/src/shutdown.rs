//! Graceful shutdown: the signals that begin it, and the drain that the parts of a program wait for.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::watch;

use self::platform::{Interrupt, Terminate, interrupt, terminate};

/// Begins the shutdown.
#[derive(Debug)]
pub struct Signal(watch::Sender<bool>);

/// Observes the shutdown.
#[derive(Debug, Clone)]
pub struct Drain(watch::Receiver<bool>);

/// Observes the shutdown by polling, for bodies and other types that are polled themselves.
pub struct Draining {
    /// None once the shutdown has begun.
    waiting: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// The signals that shut a process down: SIGTERM and SIGINT; on Windows, the end of the console and Ctrl-C.
#[derive(Debug)]
pub struct Signals {
    terminate: Terminate,
    interrupt: Interrupt,
}

/// A signal and its drain.
pub fn channel() -> (Signal, Drain) {
    let (sender, receiver) = watch::channel(false);
    (Signal(sender), Drain(receiver))
}

// === impl Signal ===

impl Signal {
    /// Begins the shutdown.
    pub fn begin(&self) {
        self.0.send_replace(true);
    }

    /// Completes when all drains are dropped: everything that observed the shutdown has ended.
    pub async fn all_ended(&self) {
        self.0.closed().await;
    }
}

// === impl Drain ===

impl Drain {
    /// Completes when the shutdown begins.
    pub async fn begun(&mut self) {
        // Without a sender the process is shutting down, too.
        let _ = self.0.wait_for(|begun| *begun).await;
    }

    /// Whether the shutdown has begun.
    pub fn has_begun(&self) -> bool {
        *self.0.borrow()
    }

    /// The same drain, to be polled.
    pub fn draining(&self) -> Draining {
        let mut drain = self.clone();
        Draining {
            waiting: Some(Box::pin(async move { drain.begun().await })),
        }
    }
}

// === impl Draining ===

impl Draining {
    /// Ready once the shutdown has begun, and from then on.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
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

// === impl Signals ===

impl Signals {
    /// Installs the handlers.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: terminate()?,
            interrupt: interrupt()?,
        })
    }

    /// Completes with the first signal.
    pub async fn any(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

#[cfg(unix)]
mod platform {
    use std::io;

    pub(super) use tokio::signal::unix::{Signal as Interrupt, Signal as Terminate};
    use tokio::signal::unix::{SignalKind, signal};

    pub(super) fn interrupt() -> io::Result<Interrupt> {
        signal(SignalKind::interrupt())
    }

    pub(super) fn terminate() -> io::Result<Terminate> {
        signal(SignalKind::terminate())
    }
}

#[cfg(windows)]
mod platform {
    pub(super) use tokio::signal::windows::{
        CtrlC as Interrupt, CtrlClose as Terminate, ctrl_c as interrupt, ctrl_close as terminate,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn all_drains_observe_the_shutdown() {
        let (signal, mut drain) = channel();
        let mut late = drain.clone();
        assert!(!drain.has_begun());
        signal.begin();
        drain.begun().await;
        drop(signal);
        late.begun().await;
        assert!(late.has_begun());
    }

    #[tokio::test]
    async fn a_polled_drain_stays_ready() {
        let (signal, drain) = channel();
        let mut draining = drain.draining();
        let mut poll = async || std::future::poll_fn(|cx| Poll::Ready(draining.poll(cx))).await;
        assert!(poll().await.is_pending());
        signal.begin();
        assert!(poll().await.is_ready());
        assert!(poll().await.is_ready());
    }

    #[tokio::test]
    async fn a_signal_waits_for_all_drains() {
        let (signal, drain) = channel();
        let mut ended = Box::pin(signal.all_ended());
        assert!(futures::poll!(ended.as_mut()).is_pending());
        drop(drain);
        ended.await;
    }
}
