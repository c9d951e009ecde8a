//! What a client sees that looks all the time while something happens.

use std::future::Future;
use std::ops::AsyncFnMut;
use std::time::{Duration, Instant};

use anyhow::Result;
use testbed::client::ApiClient;

/// Between two looks.
const EVERY: Duration = Duration::from_millis(250);
/// How long a response may take that counts as one.
const PATIENCE: Duration = Duration::from_secs(2);

/// Polls until the work is done. A failed check ends the work.
pub(crate) async fn meanwhile<T>(
    work: impl Future<Output = Result<T>>,
    mut look: impl AsyncFnMut() -> Result<()>,
) -> Result<T> {
    let looking = async {
        loop {
            if let Err(wrong) = look().await {
                return wrong;
            }
            tokio::time::sleep(EVERY).await;
        }
    };
    tokio::select! {
        done = work => done,
        wrong = looking => Err(wrong),
    }
}

/// How long an API server did not respond.
#[derive(Debug, Default)]
pub(crate) struct Outages {
    since: Option<Instant>,
    /// The longest time between two responses in which one was missing.
    pub(crate) longest: Duration,
    /// How many times that was.
    pub(crate) count: usize,
    responded: Option<Instant>,
}

// === impl Outages ===

impl Outages {
    /// Sends one request.
    pub(crate) async fn ask(&mut self, client: &ApiClient) {
        let response = tokio::time::timeout(PATIENCE, client.get("/api/v1/namespaces/default"));
        let is_up = matches!(response.await, Ok(Ok(_)));
        let now = Instant::now();
        match (is_up, self.since.take()) {
            (true, None) => self.responded = Some(now),
            (true, Some(since)) => {
                self.longest = self.longest.max(now - since);
                self.responded = Some(now);
            }
            (false, None) => {
                self.count += 1;
                self.since = Some(self.responded.unwrap_or(now));
            }
            (false, since) => self.since = since,
        }
    }
}
