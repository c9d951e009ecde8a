//! Being told to end: Ctrl-C, or SIGTERM.

use anyhow::{Context, Result};
use tokio::signal::unix::{SignalKind, signal};

/// Waits for Ctrl-C or SIGTERM.
pub(crate) async fn told_to_end() -> Result<()> {
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot watch for Ctrl-C")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot watch for SIGTERM")?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}
