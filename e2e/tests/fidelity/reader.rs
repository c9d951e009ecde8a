//! A strict list-and-watch client that records what it observes.
//!
//! It continues from the last version that it has seen, lists again only when that version has expired, and takes
//! nothing that it does not understand: a body that ends cleanly within an event, an event out of place, an error that
//! is not one of the API's.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use http::StatusCode;
use serde::Deserialize;
use testbed::raw::{Lines, RawClient, Response};
use tokio::sync::watch;

use crate::fidelity::backoff::Backoff;
use crate::fidelity::history::{Change, Entry, Event, State};

/// How long a proxy or a server may stay away.
const BACK_WITHIN: Duration = Duration::from_mins(1);
const GONE: StatusCode = StatusCode::GONE;
const BUSY: StatusCode = StatusCode::TOO_MANY_REQUESTS;
const INITIAL_END: &str = "k8s.io/initial-events-end";

/// Where a reader reads, and how.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) client: RawClient,
    /// The collection, under the name that it has there.
    pub(crate) path: String,
    pub(crate) start: Start,
    /// What is replaced in each event before it is compared: the other name of the group.
    pub(crate) renamed: Option<(String, String)>,
}

/// How a reader learns what there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// By a list.
    List,
    /// By a watch that begins with it, as today's informers do.
    Watch,
}

/// A reader at work.
#[derive(Debug)]
pub(crate) struct Reader {
    source: Source,
    until: watch::Receiver<Until>,
    /// Counts events for those who wait for some.
    count: Arc<AtomicUsize>,
    history: Vec<Entry>,
    /// All up to this is known.
    version: u64,
}

/// The parts of an event that the reader looks at.
#[derive(Debug, Deserialize)]
struct Seen {
    #[serde(rename = "type")]
    kind: String,
    object: Object,
}

#[derive(Debug, Deserialize)]
struct Object {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    code: u16,
    #[serde(default)]
    message: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    name: String,
    #[serde(default)]
    resource_version: String,
    #[serde(default)]
    annotations: serde_json::Map<String, serde_json::Value>,
}

#[derive(Debug, Deserialize)]
struct List {
    metadata: Metadata,
    items: Vec<Object>,
}

/// How far a reader is to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// It is not known yet.
    Open,
    /// Behind this version nothing will come.
    Version(u64),
    /// No further, whatever is missing.
    Now,
}

/// Why a watch is over.
#[derive(Debug, PartialEq, Eq)]
enum Over {
    /// Everything has been read.
    Done,
    /// It broke off, or the server ended it.
    Interrupted,
    /// Its version is too old.
    Expired,
}

/// Something that was begun, unless it was cut off.
type Begun<T> = Option<T>;

// === impl Reader ===

impl Reader {
    pub(crate) fn new(
        source: Source,
        until: watch::Receiver<Until>,
        count: Arc<AtomicUsize>,
    ) -> Self {
        Self {
            source,
            until,
            count,
            history: Vec::new(),
            version: 0,
        }
    }

    /// Reads until the end; gives everything that it went through.
    pub(crate) async fn run(mut self) -> Result<Vec<Entry>> {
        let mut over = self.list().await?;
        loop {
            over = match over {
                Over::Done => return Ok(self.history),
                Over::Interrupted => {
                    self.history.push(Entry::Resumed(self.version));
                    self.watch().await?
                }
                Over::Expired => self.list().await?,
            };
        }
    }

    /// Learns what there is, and continues from there.
    async fn list(&mut self) -> Result<Over> {
        loop {
            match self.source.start {
                Start::List => {
                    if self.list_once().await?.is_some() {
                        return self.watch().await;
                    }
                }
                Start::Watch => {
                    if let Some(lines) = self.initial_events().await? {
                        return self.follow(lines).await;
                    }
                }
            }
        }
    }

    async fn list_once(&mut self) -> Result<Begun<()>> {
        let Ok(bytes) = self.ask("").await?.bytes().await else {
            return Ok(None);
        };
        let list: List = serde_json::from_slice(&bytes).context("a whole list is not a list")?;
        let state = list.items.iter().map(|item| item.metadata.state());
        self.listed(list.metadata.version()?, state.collect::<Result<State>>()?);
        Ok(Some(()))
    }

    async fn initial_events(&mut self) -> Result<Begun<Lines>> {
        let question = "?watch=true&allowWatchBookmarks=true&sendInitialEvents=true\
                        &resourceVersionMatch=NotOlderThan";
        let mut lines = self.ask(question).await?.lines();
        let mut state = State::new();
        while let Ok(Some(line)) = lines.next().await {
            let seen = Seen::read(&line)?;
            let metadata = &seen.object.metadata;
            match seen.kind.as_str() {
                "ADDED" => state.extend([metadata.state()?]),
                "BOOKMARK" if metadata.annotations.contains_key(INITIAL_END) => {
                    self.listed(metadata.version()?, state);
                    return Ok(Some(lines));
                }
                kind => bail!("{kind} among the initial events"),
            }
        }
        Ok(None)
    }

    fn listed(&mut self, version: u64, state: State) {
        self.version = version;
        self.history.push(Entry::Listed { version, state });
    }

    /// Watches from the last version on.
    async fn watch(&mut self) -> Result<Over> {
        let version = self.version;
        let question = format!("?watch=true&allowWatchBookmarks=true&resourceVersion={version}");
        let response = self.ask(&question).await?;
        if response.status == GONE {
            return Ok(Over::Expired);
        }
        self.follow(response.lines()).await
    }

    /// Sends requests until there is a response.
    async fn ask(&self, question: &str) -> Result<Response> {
        let path = format!("{}{question}", self.source.path);
        let backoff = Backoff::new(BACK_WITHIN);
        loop {
            let trouble = match self.source.client.get(&path).await {
                Ok(response) if response.status.is_server_error() || response.status == BUSY => {
                    response.status.to_string()
                }
                Ok(response) => {
                    let status = response.status;
                    ensure!(status.is_success() || status == GONE, "{path}: {status}");
                    return Ok(response);
                }
                Err(error) => error.to_string(),
            };
            backoff.again(&format!("{path}: {trouble}")).await?;
        }
    }

    /// Writes down events until the watch is over.
    async fn follow(&mut self, mut lines: Lines) -> Result<Over> {
        loop {
            let until = *self.until.borrow();
            match until {
                Until::Version(version) if self.version >= version => return Ok(Over::Done),
                Until::Now => return Ok(Over::Done),
                Until::Version(_) | Until::Open => {}
            }
            let read = tokio::select! {
                read = lines.next() => read,
                changed = self.until.changed() => {
                    changed.context("it is not known how far to read")?;
                    continue;
                }
            };
            match read {
                Ok(Some(line)) => {
                    if let Some(over) = self.seen(&line)? {
                        return Ok(over);
                    }
                }
                Ok(None) => {
                    let rest = lines.unfinished().len();
                    ensure!(
                        rest == 0,
                        "a response ended cleanly within an event, {rest} bytes in"
                    );
                    return Ok(Over::Interrupted);
                }
                Err(_) => return Ok(Over::Interrupted),
            }
        }
    }

    fn seen(&mut self, line: &[u8]) -> Result<Option<Over>> {
        let Seen { kind, object } = Seen::read(line)?;
        let change = match kind.as_str() {
            "ADDED" => Change::Added,
            "MODIFIED" => Change::Modified,
            "DELETED" => Change::Deleted,
            "BOOKMARK" => {
                self.version = object.metadata.version()?;
                self.history.push(Entry::Bookmark(self.version));
                return Ok(None);
            }
            "ERROR" if object.code == GONE.as_u16() => return Ok(Some(Over::Expired)),
            kind => bail!("{kind} in a watch: {} {}", object.code, object.message),
        };
        self.version = object.metadata.version()?;
        self.history.push(Entry::Seen(Event {
            version: self.version,
            name: object.metadata.name,
            change,
            digest: self.digest(line)?,
        }));
        self.count.fetch_add(1, Ordering::Relaxed);
        Ok(None)
    }

    /// A digest of all bytes of an event, as a client of standard types should see them.
    fn digest(&self, line: &[u8]) -> Result<u64> {
        let mut hasher = DefaultHasher::new();
        let text = std::str::from_utf8(line).context("an event is not UTF-8")?;
        match &self.source.renamed {
            Some((from, to)) => text.replace(from, to).hash(&mut hasher),
            None => text.hash(&mut hasher),
        }
        Ok(hasher.finish())
    }
}

// === impl Seen ===

impl Seen {
    fn read(line: &[u8]) -> Result<Self> {
        serde_json::from_slice(line).with_context(|| {
            let text = String::from_utf8_lossy(line);
            format!("a whole line is not an event: {text:.200}")
        })
    }
}

// === impl Metadata ===

impl Metadata {
    fn version(&self) -> Result<u64> {
        let version = &self.resource_version;
        version
            .parse()
            .with_context(|| format!("{version:?} is not a resource version"))
    }

    fn state(&self) -> Result<(String, u64)> {
        Ok((self.name.clone(), self.version()?))
    }
}
