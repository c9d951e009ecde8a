//! Signals that end a program: SIGINT (Ctrl-C) and SIGTERM.

use anyhow::{Context, Result};
use tokio::signal::unix::{SignalKind, signal};

/// Waits for SIGINT or SIGTERM.
pub async fn terminated() -> Result<()> {
    let mut interrupt = signal(SignalKind::interrupt()).context("failed to listen for SIGINT")?;
    let mut terminate = signal(SignalKind::terminate()).context("failed to listen for SIGTERM")?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}
