//! A client of the hosted API that reads and writes all the time, through the address at which the API is published.
//!
//! It behaves as clients do: it keeps its connection, gives a request up after a while, and then connects again. It also
//! holds the API to its promises: what was acknowledged is there from then on.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::client::{ApiClient, Patch, Resource, status_code};
use testbed::wait;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::highly_available::journal::{Journal, Kind, Seen};

const CONFIG_MAPS: Resource<'_> = Resource::new("v1", "configmaps");
const NAMESPACE: &str = "default";
const NAME: &str = "written-all-the-time";
/// How often it sends a request.
const EVERY: Duration = Duration::from_millis(100);
/// How long it waits for a response.
pub(crate) const GIVES_UP_AFTER: Duration = Duration::from_secs(2);
/// How long it may take until it gets a response again. Generous: a busy machine is no failure.
const WITHIN: Duration = Duration::from_mins(3);

/// What both of its sides know.
#[derive(Debug)]
struct Shared {
    kubeconfig: PathBuf,
    journal: Journal,
    /// The newest count with an acknowledged write.
    acknowledged: AtomicU64,
    /// Whether an older one was read after that.
    lost: AtomicBool,
}

/// The client. It ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Client {
    shared: Arc<Shared>,
    sides: [JoinHandle<()>; 2],
}

// === impl Client ===

impl Client {
    /// Begins to read and to write as the user of a kubeconfig.
    pub(crate) async fn start(kubeconfig: &Path) -> Result<Self> {
        let api = ApiClient::from_kubeconfig(kubeconfig).await?;
        api.apply(&[object(0)]).await?;
        let shared = Arc::new(Shared {
            kubeconfig: kubeconfig.to_owned(),
            journal: Journal::begin(),
            acknowledged: AtomicU64::new(0),
            lost: AtomicBool::new(false),
        });
        let sides = [
            tokio::spawn(read(Arc::clone(&shared), api.clone())),
            tokio::spawn(write(Arc::clone(&shared), api)),
        ];
        Ok(Self { shared, sides })
    }

    /// Now, as its journal counts.
    pub(crate) fn now(&self) -> Duration {
        self.shared.journal.now()
    }

    /// Waits until all requests from now on get responses.
    pub(crate) async fn is_available(&self) -> Result<()> {
        let from = self.now();
        wait::until("the client to get responses", WITHIN, async || {
            let steady = self.shared.journal.is_steady_since(from);
            ensure!(steady, "requests fail: {:?}", self.seen(from));
            Ok(())
        })
        .await
    }

    /// Waits until its writes get no response.
    pub(crate) async fn cannot_write(&self) -> Result<()> {
        let from = self.now();
        wait::until("writes to fail", WITHIN, async || {
            let silent = self.shared.journal.is_silent_since(Kind::Write, from);
            ensure!(silent, "writes succeed: {:?}", self.seen(from));
            Ok(())
        })
        .await
    }

    /// What it has seen since a moment: of its reads, and of its writes.
    pub(crate) fn seen(&self, from: Duration) -> [Seen; 2] {
        let journal = &self.shared.journal;
        let to = journal.now();
        [Kind::Read, Kind::Write].map(|kind| journal.seen(kind, from, to))
    }

    /// Fails if something that was written has been lost.
    pub(crate) fn has_lost_nothing(&self) -> Result<()> {
        ensure!(
            !self.shared.lost.load(Ordering::SeqCst),
            "what the API server had acknowledged was not there any more"
        );
        Ok(())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        for side in &self.sides {
            side.abort();
        }
    }
}

// === impl Shared ===

impl Shared {
    /// Makes a request, and records its result. Without a response, the next one takes another connection.
    async fn ask<T>(
        &self,
        kind: Kind,
        api: &mut ApiClient,
        request: impl AsyncFnOnce(&ApiClient) -> Result<T>,
    ) -> Option<T> {
        let outcome = match timeout(GIVES_UP_AFTER, request(api)).await {
            Ok(outcome) => outcome.map_err(|error| reason(&error)),
            Err(_) => Err("no response".to_owned()),
        };
        match outcome {
            Ok(response) => {
                self.journal.add(kind, None);
                Some(response)
            }
            Err(reason) => {
                self.journal.add(kind, Some(reason));
                if let Ok(other) = ApiClient::from_kubeconfig(&self.kubeconfig).await {
                    *api = other;
                }
                None
            }
        }
    }
}

async fn read(shared: Arc<Shared>, mut api: ApiClient) {
    let mut ticks = ticks();
    loop {
        ticks.tick().await;
        let written = shared.acknowledged.load(Ordering::SeqCst);
        let found = shared.ask(Kind::Read, &mut api, get).await;
        if found.is_some_and(|object| count(&object) < written) {
            shared.lost.store(true, Ordering::SeqCst);
        }
    }
}

async fn write(shared: Arc<Shared>, mut api: ApiClient) {
    let mut ticks = ticks();
    let mut known: Option<Value> = None;
    loop {
        ticks.tick().await;
        let last = known.take();
        known = shared
            .ask(Kind::Write, &mut api, async |api| {
                let last = match last {
                    Some(last) => last,
                    // The result of the last write is unknown.
                    None => get(api).await?,
                };
                next(api, &last).await
            })
            .await;
        if let Some(object) = &known {
            shared.acknowledged.store(count(object), Ordering::SeqCst);
        }
    }
}

/// Writes the next count. One that was given up cannot come through later: it names the version that it follows.
async fn next(api: &ApiClient, last: &Value) -> Result<Value> {
    let mut object = object(count(last) + 1);
    object["metadata"]["resourceVersion"] = last["metadata"]["resourceVersion"].clone();
    match api.patch(&path(), Patch::Merge, &object).await {
        // One that was given up did come through: that is a response, too.
        Err(error) if status_code(&error) == Some(409) => get(api).await,
        outcome => outcome,
    }
}

async fn get(api: &ApiClient) -> Result<Value> {
    api.get(&path()).await
}

fn path() -> String {
    CONFIG_MAPS.named(NAMESPACE, NAME)
}

fn object(count: u64) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "namespace": NAMESPACE, "name": NAME },
        "data": { "count": count.to_string() },
    })
}

fn count(object: &Value) -> u64 {
    let text = object["data"]["count"].as_str().unwrap_or_default();
    text.parse().unwrap_or_default()
}

fn ticks() -> tokio::time::Interval {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Why there was no response, in brief.
fn reason(error: &anyhow::Error) -> String {
    match status_code(error) {
        Some(code) => format!("status {code}"),
        None => "connection".to_owned(),
    }
}

/// The newest count that is stored, by a client of its own.
pub(crate) async fn stored(api: &ApiClient) -> Result<u64> {
    let object = get(api).await.context("what the client wrote")?;
    Ok(count(&object))
}
