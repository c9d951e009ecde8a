//! Signals, and how the end of the process is made known to all that must end before it.

use std::io;

use tokio::signal::unix::{self, SignalKind};
use tokio::sync::watch;

/// Tells that the process is to end.
#[derive(Debug)]
pub struct Signal(watch::Sender<bool>);

/// Hears that the process is to end.
#[derive(Debug, Clone)]
pub struct Drain(watch::Receiver<bool>);

/// The signals that end a process: SIGTERM and SIGINT.
#[derive(Debug)]
pub struct Signals {
    terminate: unix::Signal,
    interrupt: unix::Signal,
}

/// A signal, and who hears it.
pub fn channel() -> (Signal, Drain) {
    let (sender, receiver) = watch::channel(false);
    (Signal(sender), Drain(receiver))
}

// === impl Signal ===

impl Signal {
    /// Begins the end.
    pub fn begin(&self) {
        self.0.send_replace(true);
    }
}

// === impl Drain ===

impl Drain {
    /// Completes when the process is to end.
    pub async fn begun(&mut self) {
        // Without a sender the process is ending, too.
        let _ = self.0.wait_for(|begun| *begun).await;
    }

    /// Whether the process is to end.
    pub fn has_begun(&self) -> bool {
        *self.0.borrow()
    }
}

// === impl Signals ===

impl Signals {
    /// Handles the signals from now on.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: unix::signal(SignalKind::terminate())?,
            interrupt: unix::signal(SignalKind::interrupt())?,
        })
    }

    /// Completes with the first of them.
    pub async fn any(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn everybody_hears_of_the_end() {
        let (signal, mut drain) = channel();
        let mut late = drain.clone();
        assert!(!drain.has_begun());
        signal.begin();
        drain.begun().await;
        drop(signal);
        late.begun().await;
        assert!(late.has_begun());
    }
}
