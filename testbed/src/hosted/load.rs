//! A client that reads and writes a cluster's API all the time, and does not forgive.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::client::{ApiClient, Patch, Resource};

const CONFIG_MAPS: Resource<'_> = Resource::new("v1", "configmaps");
/// Between two rounds, each of which writes and reads back.
const EVERY: Duration = Duration::from_millis(100);

/// What it has seen.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// How often it has written and read back.
    pub rounds: u64,
    /// The longest time that took.
    pub longest: Duration,
    /// Errors, each with its time.
    pub errors: Vec<String>,
}

/// The client. It ends when it is dropped.
#[derive(Debug)]
pub struct Load {
    api: ApiClient,
    seen: Arc<Mutex<Seen>>,
    asking: JoinHandle<()>,
}

// === impl Load ===

impl Load {
    /// Begins.
    pub async fn start(api: &ApiClient) -> Result<Self> {
        round(api, 0).await?;
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let asking = tokio::spawn(ask(api.clone(), Arc::clone(&seen)));
        Ok(Self {
            api: api.clone(),
            seen,
            asking,
        })
    }

    /// What it has seen up to now.
    pub fn so_far(&self) -> Seen {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.clone()
    }

    /// Ends it; fails if there was any error, or if it has not sent requests steadily.
    pub async fn ends(self) -> Result<Seen> {
        self.asking.abort();
        let seen = self.so_far();
        ensure!(
            seen.errors.is_empty(),
            "of {seen}, {} failed: {:#?}",
            seen.errors.len(),
            seen.errors
        );
        ensure!(seen.rounds > 100, "it saw no more than {seen}");
        round(&self.api, u64::MAX).await?;
        Ok(seen)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.asking.abort();
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let longest = self.longest.as_secs_f64();
        let errors = match self.errors.len() {
            0 => "without an error".to_owned(),
            1 => "with 1 error".to_owned(),
            many => format!("with {many} errors"),
        };
        write!(
            f,
            "{} rounds {errors}, the longest of {longest:.2} s",
            self.rounds
        )
    }
}

async fn ask(api: ApiClient, seen: Arc<Mutex<Seen>>) {
    let begun = Instant::now();
    for count in 1.. {
        let start = Instant::now();
        let outcome = round(&api, count).await;
        {
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.rounds = count;
            seen.longest = seen.longest.max(start.elapsed());
            if let Err(error) = outcome {
                let at = begun.elapsed().as_secs_f64();
                seen.errors.push(format!("at {at:.1} s: {error:#}"));
            }
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// Writes a number, and reads it back.
async fn round(api: &ApiClient, count: u64) -> Result<()> {
    let path = CONFIG_MAPS.named("default", "written-all-the-time");
    let text = count.to_string();
    let object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "namespace": "default", "name": "written-all-the-time" },
        "data": { "count": text },
    });
    let written = api.patch(&path, Patch::Apply, &object).await;
    written.context("a write")?;
    let found = api.get(&path).await.context("a read")?;
    ensure!(
        found["data"]["count"] == text.as_str(),
        "{} was read, and {text} was written",
        found["data"]
    );
    Ok(())
}
