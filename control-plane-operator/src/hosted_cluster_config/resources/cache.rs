//! The objects of the hosted cluster that this operator has written, and all namespaces, by watches.
//!
//! ```text
//!   watch per kind, label "managed" ── objects ──┐
//!   watch of namespaces ───────────── objects ──┼──> snapshot of a pass
//!   watch of definitions (metadata) ── a kind is served: watch it
//! ```
//!
//! A kind that is not served costs one request. It is requested again when its CustomResourceDefinition or its APIService
//! changes.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::LocalBoxFuture;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::DynamicObject;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use support::controller::Wake;
use support::error::chain;
use support::reconcile::{Backoff, is_missing};
use tokio::sync::watch;

use super::super::error::Error;
use super::desired::{Guest, KINDS, Key, MANAGED, objects_of_others};

/// A new definition is served after a moment.
const ESTABLISHED_AFTER: Duration = Duration::from_secs(1);
/// How long a pass waits for the initial lists.
const INITIAL_LISTS: Duration = Duration::from_secs(5);
const NAMESPACE: &str = "Namespace";
const API_SERVICE: &str = "APIService";

/// Group and version, and kind.
type Kind = (String, String);

/// The live objects.
pub(in super::super) struct GuestCache {
    client: kube::Client,
    kinds: Mutex<BTreeMap<Kind, State>>,
    /// Names of definitions and their resource versions.
    definitions: watch::Sender<BTreeMap<String, String>>,
    /// Objects whose skip is logged.
    skipped: Mutex<BTreeSet<Key>>,
    /// Kinds whose initial list is not complete.
    unlisted: watch::Sender<BTreeSet<Kind>>,
}

/// What is known of a kind.
#[derive(Debug, Default)]
enum State {
    /// Its initial list is not complete.
    #[default]
    Unknown,
    NotServed,
    Watched(BTreeMap<Key, Value>),
}

/// Whether objects of a kind can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Served {
    Unknown,
    No,
    Yes,
}

/// A watch.
#[derive(Debug, Clone)]
struct Source {
    /// What is watched; the name is only set for a single object.
    key: Key,
    config: watcher::Config,
}

// === impl GuestCache ===

impl GuestCache {
    pub(in super::super) fn new(client: kube::Client) -> Self {
        Self {
            client,
            kinds: Mutex::default(),
            definitions: watch::Sender::default(),
            skipped: Mutex::default(),
            unlisted: watch::Sender::new(KINDS.map(owned).into()),
        }
    }

    /// Waits for the initial lists: without them, each object would be read.
    pub(super) async fn wait_until_listed(&self) -> Result<(), Error> {
        let mut unlisted = self.unlisted.subscribe();
        let complete = unlisted.wait_for(BTreeSet::is_empty);
        let is_complete = tokio::time::timeout(INITIAL_LISTS, complete).await.is_ok();
        // After that, objects of the other kinds are written.
        if is_complete || self.unlisted.borrow().len() < KINDS.len() {
            return Ok(());
        }
        Err(Error::waiting("the initial lists of the hosted cluster"))
    }

    /// Runs all watches.
    pub(in super::super) fn watches(&self, wake: &Wake) -> Vec<LocalBoxFuture<'_, ()>> {
        let mut work: Vec<LocalBoxFuture<'_, ()>> = vec![Box::pin(self.run_definitions())];
        for source in sources() {
            work.push(Box::pin(self.run(source, wake.clone())));
        }
        work
    }

    /// All objects.
    pub(super) fn snapshot(&self) -> Guest {
        let kinds = self.lock();
        let objects = kinds.values().flat_map(|state| match state {
            State::Watched(objects) => objects.values().cloned().collect(),
            State::Unknown | State::NotServed => Vec::new(),
        });
        objects.collect()
    }

    pub(super) fn served(&self, key: &Key) -> Served {
        self.state(&kind(key))
    }

    /// The same for an object that is watched by its name.
    pub(super) fn served_object(&self, key: &Key) -> Served {
        self.state(&slot(key))
    }

    fn state(&self, slot: &Kind) -> Served {
        match self.lock().get(slot) {
            Some(State::Watched(_)) => Served::Yes,
            Some(State::NotServed) => Served::No,
            Some(State::Unknown) | None => Served::Unknown,
        }
    }

    /// Adds an object that this operator has written, before its event comes.
    pub(super) fn written(&self, object: &Value) {
        let key = Key::of(object);
        lock(&self.skipped).remove(&key);
        if let Some(State::Watched(objects)) = self.lock().get_mut(&kind(&key)) {
            let known = objects.get(&key).map(version);
            if known.is_none_or(|known| known < version(object)) {
                objects.insert(key, object.clone());
            }
        }
    }

    /// Logs once that an object is skipped.
    pub(super) fn skip(&self, key: &Key, reason: &'static str) {
        if lock(&self.skipped).insert(key.clone()) {
            tracing::info!(object = %key, reason, "Skipping object of the hosted cluster");
        }
    }

    fn listed(&self, source: &Source) {
        let slot = source.slot();
        self.unlisted
            .send_if_modified(|unlisted| unlisted.remove(&slot));
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Kind, State>> {
        lock(&self.kinds)
    }

    async fn run_definitions(&self) {
        let api: Api<PartialObjectMeta<CustomResourceDefinition>> = Api::all(self.client.clone());
        let events = watcher(api, watcher::Config::default());
        let mut events = pin!(events.backoff(Backoff::default()));
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::InitApply(found) | Event::Apply(found)) => self.defined(&found),
                Ok(Event::Init | Event::InitDone | Event::Delete(_)) => {}
                Err(error) => tracing::debug!(problem = chain(&error), "Watch failed"),
            }
        }
    }

    fn defined(&self, found: &PartialObjectMeta<CustomResourceDefinition>) {
        self.define(
            found.name_any(),
            found.resource_version().unwrap_or_default(),
        );
    }

    pub(super) fn define(&self, name: String, version: String) {
        self.definitions.send_modify(|known| {
            known.insert(name, version);
        });
    }

    /// Watches a kind whenever it is served.
    async fn run(&self, source: Source, wake: Wake) {
        let mut definitions = self.definitions.subscribe();
        loop {
            let tried = definition(&source.key, &definitions.borrow_and_update());
            self.watch(&source, &wake).await;
            self.lock().insert(source.slot(), State::NotServed);
            self.listed(&source);
            wake.wake();
            let is_new = |known: &BTreeMap<_, _>| definition(&source.key, known) != tried;
            if definitions.wait_for(is_new).await.is_err() {
                return;
            }
            tokio::time::sleep(ESTABLISHED_AFTER).await;
        }
    }

    /// Watches a kind until it is not served.
    async fn watch(&self, source: &Source, wake: &Wake) {
        let resource = source.key.resource();
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        let events = watcher(api, source.config.clone()).backoff(Backoff::default());
        let mut events = pin!(events);
        let mut initial = Vec::new();
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => {
                    if self.apply(source, event, &mut initial) {
                        wake.wake();
                    }
                }
                Err(error) if is_not_served(&error) => return,
                Err(error) => tracing::debug!(problem = chain(&error), "Watch failed"),
            }
        }
    }

    /// Updates the objects. Returns whether a pass may see a change.
    fn apply(
        &self,
        source: &Source,
        event: Event<DynamicObject>,
        initial: &mut Vec<Value>,
    ) -> bool {
        let mut kinds = self.lock();
        let state = kinds.entry(source.slot()).or_default();
        match event {
            Event::Init => {
                initial.clear();
                return false;
            }
            Event::InitApply(object) => {
                initial.push(self.value(source, object));
                return false;
            }
            Event::InitDone => {
                let listed = std::mem::take(initial).into_iter();
                let listed = listed.map(|value| (Key::of(&value), value));
                *state = State::Watched(listed.collect());
                self.listed(source);
            }
            Event::Apply(object) => {
                let value = self.value(source, object);
                if let State::Watched(objects) = state {
                    objects.insert(Key::of(&value), value);
                }
            }
            Event::Delete(object) => {
                let value = self.value(source, object);
                if let State::Watched(objects) = state {
                    objects.remove(&Key::of(&value));
                }
            }
        }
        true
    }

    fn value(&self, source: &Source, mut object: DynamicObject) -> Value {
        object.metadata.managed_fields = None;
        if source.key.kind == API_SERVICE {
            let version = object.resource_version().unwrap_or_default();
            self.define(object.name_any(), version);
        }
        let mut value = serde_json::to_value(object).unwrap_or_default();
        value["apiVersion"] = json!(source.key.api_version);
        value["kind"] = json!(source.key.kind);
        value
    }
}

// === impl Source ===

impl Source {
    /// Where its objects are. Those of a single object's watch are separate from those with the label.
    fn slot(&self) -> Kind {
        slot(&self.key)
    }
}

#[cfg(test)]
impl GuestCache {
    /// Watches all kinds of these groups.
    pub(super) fn serve(&self, api_versions: &[&str]) {
        for kind in KINDS
            .into_iter()
            .filter(|(api, _)| api_versions.contains(api))
        {
            self.lock()
                .insert(owned(kind), State::Watched(BTreeMap::new()));
        }
    }

    pub(super) fn not_served(&self, api_version: &str) {
        for kind in KINDS.into_iter().filter(|(api, _)| *api == api_version) {
            self.lock().insert(owned(kind), State::NotServed);
        }
    }

    pub(super) fn add(&self, object: Value) {
        let key = Key::of(&object);
        if let Some(State::Watched(objects)) = self.lock().get_mut(&kind(&key)) {
            objects.insert(key, object);
        }
    }

    pub(super) async fn run_kind(&self, api_version: &str, kind: &str, wake: Wake) {
        let key = Key::new(api_version, kind, "", "");
        let config = watcher::Config::default();
        self.run(Source { key, config }, wake).await;
    }
}

fn sources() -> Vec<Source> {
    let labelled = format!("{MANAGED}=true");
    let mut sources: Vec<_> = KINDS
        .iter()
        .map(|(api_version, kind)| Source {
            key: Key::new(api_version, kind, "", ""),
            config: match *kind {
                // Whether the namespace of an object exists is decided without a request.
                NAMESPACE => watcher::Config::default(),
                _ => watcher::Config::default().labels(&labelled),
            },
        })
        .collect();
    sources.extend(objects_of_others().into_iter().map(|key| {
        let name = format!("metadata.name={}", key.name);
        // The API server does not know the field of cluster-scoped objects.
        let fields = match key.namespace.as_str() {
            "" => name,
            namespace => format!("{name},metadata.namespace={namespace}"),
        };
        Source {
            key,
            config: watcher::Config::default().fields(&fields),
        }
    }));
    sources
}

fn owned((api_version, kind): (&str, &str)) -> Kind {
    (api_version.to_owned(), kind.to_owned())
}

fn kind(key: &Key) -> Kind {
    (key.api_version.clone(), key.kind.clone())
}

fn slot(key: &Key) -> Kind {
    (key.api_version.clone(), format!("{}{}", key.kind, key.name))
}

/// The versions of what defines a kind.
fn definition(key: &Key, known: &BTreeMap<String, String>) -> [Option<String>; 2] {
    let resource = key.resource();
    [
        format!("{}.{}", resource.plural, resource.group),
        format!("{}.{}", resource.version, resource.group),
    ]
    .map(|name| known.get(&name).cloned())
}

fn version(object: &Value) -> u64 {
    let version = object["metadata"]["resourceVersion"].as_str();
    version
        .and_then(|version| version.parse().ok())
        .unwrap_or(0)
}

fn is_not_served(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error) => {
            is_missing(error)
        }
        watcher::Error::WatchError(status) => status.code == 404,
        watcher::Error::WatchFailed(_) | watcher::Error::NoResourceVersion => false,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
