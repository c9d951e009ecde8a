//! Reads at a version that is not the stored one, 200 a second.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use testbed::client::ApiClient;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

/// Who read at a time.
pub(crate) const READERS: usize = 8;
/// Between two reads of one reader.
const PACE: Duration = Duration::from_millis(40);

/// Readers at work.
#[derive(Debug)]
pub(crate) struct Load {
    readers: JoinSet<Vec<String>>,
    ended: Arc<AtomicBool>,
    reads: Arc<AtomicUsize>,
}

/// What became of the reads.
#[derive(Debug)]
pub(crate) struct Reads {
    pub(crate) all: usize,
    /// Why some failed.
    pub(crate) failures: Vec<String>,
}

// === impl Load ===

impl Load {
    pub(crate) fn start(admin: &ApiClient, path: &str) -> Self {
        let (ended, reads) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let mut readers = JoinSet::new();
        for _ in 0..READERS {
            let reader = read(admin.clone(), path.to_owned(), ended.clone(), reads.clone());
            readers.spawn(reader);
        }
        Self {
            readers,
            ended,
            reads,
        }
    }

    /// How many reads there were until now.
    pub(crate) fn reads(&self) -> usize {
        self.reads.load(Ordering::Relaxed)
    }

    pub(crate) async fn end(self) -> Result<Reads> {
        self.ended.store(true, Ordering::Relaxed);
        let failures = self.readers.join_all().await.concat();
        Ok(Reads {
            all: self.reads.load(Ordering::Relaxed),
            failures,
        })
    }
}

// === impl Reads ===

impl Reads {
    /// How many there were; fails if any of them failed.
    pub(crate) fn all_succeeded(self) -> Result<usize> {
        let first = self.failures.first();
        ensure!(
            first.is_none(),
            "{} of {} reads failed, the first: {first:?}",
            self.failures.len(),
            self.all
        );
        Ok(self.all)
    }
}

async fn read(
    admin: ApiClient,
    path: String,
    ended: Arc<AtomicBool>,
    reads: Arc<AtomicUsize>,
) -> Vec<String> {
    let mut failures = Vec::new();
    let mut pace = tokio::time::interval(PACE);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !ended.load(Ordering::Relaxed) {
        pace.tick().await;
        if let Err(error) = admin.get(&path).await {
            failures.push(format!("{error:#}"));
        }
        reads.fetch_add(1, Ordering::Relaxed);
    }
    failures
}
