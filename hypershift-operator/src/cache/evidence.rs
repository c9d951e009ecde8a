//! Watches all kinds of Cluster API on both sides of the group table, by metadata: which namespaces hold objects of
//! which side, without a request.
//!
//! Kinds come and go with their CRDs, which are watched, too. While a kind is not known, not listed, or may not be read,
//! nobody knows what any namespace holds: whoever asks looks for himself.

use std::collections::BTreeMap;
use std::time::Duration;

use api::group::Side;
use futures::stream::{AbortHandle, SelectAll, abortable};
use futures::{StreamExt as _, stream::BoxStream};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::DynamicObject;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt as _, watcher};
use support::error::chain;
use support::reconcile::{Backoff, Report as _};
use support::shutdown::Drain;
use tokio::time::{Instant, sleep_until};

use super::Cache;
use crate::context::Context;
use crate::error::Error;
use crate::watches;
use ownership::ObservedGroups;
use ownership_reader::Kind;

/// CRDs are installed together.
const DEBOUNCE: Duration = Duration::from_secs(1);

type Meta = PartialObjectMeta<DynamicObject>;
type Told = Result<Event<Meta>, watcher::Error>;

/// What the watches are about.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    /// Each watch's name, and the side of its kind. Nothing while it is not known which kinds there are.
    sides: Option<BTreeMap<String, Side>>,
}

/// The watches of one term.
struct Watches<'a> {
    ctx: &'a Context,
    running: BTreeMap<String, AbortHandle>,
    told: SelectAll<BoxStream<'static, (String, Told)>>,
}

/// Watches until the process is to end.
pub(crate) async fn run(ctx: &Context, mut drain: Drain) {
    let crds: Api<PartialObjectMeta<CustomResourceDefinition>> = Api::all(ctx.client.clone());
    let crds = watcher(crds, watches::config()).backoff(Backoff::default());
    let mut crds = std::pin::pin!(crds);
    let mut watches = Watches {
        ctx,
        running: BTreeMap::new(),
        told: SelectAll::new(),
    };
    let mut backoff = Backoff::default();
    let mut due = None;
    loop {
        tokio::select! {
            biased;
            () = drain.begun() => return,
            Some(told) = crds.next() => match told {
                Ok(_) => due = due.or(Some(Instant::now() + DEBOUNCE)),
                Err(error) if support::watch::watch_failed(&error) => {
                    tracing::debug!(error = chain(&error), "Failed to watch CustomResourceDefinitions");
                    ctx.cache.kinds_are(None);
                    due = due.or(Some(Instant::now() + DEBOUNCE));
                }
                Err(_) => {}
            },
            Some((name, told)) = watches.told.next() => watches.observe(&name, &told),
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                due = match watches.discover().await {
                    Ok(()) => {
                        backoff = Backoff::default();
                        None
                    }
                    Err(error) => {
                        ctx.cache.kinds_are(None);
                        tracing::debug!(error = chain(&error), "Failed to discover kinds of Cluster API");
                        Some(Instant::now() + backoff.pause(error.retry()))
                    }
                };
            }
        }
    }
}

// === impl Watches ===

impl Watches<'_> {
    /// Watches the kinds that there are now.
    async fn discover(&mut self) -> Result<(), Error> {
        let kinds = self.ctx.evidence.discover().await?;
        let sides = kinds.iter().map(|kind| (kind.name(), kind.side)).collect();
        let cache = &self.ctx.cache;
        self.running.retain(|name, watch| {
            let stays = kinds.iter().any(|kind| kind.name() == *name);
            if !stays {
                watch.abort();
                cache.index.end(name);
            }
            stays
        });
        for kind in &kinds {
            if !self.running.contains_key(&kind.name()) {
                self.begin(kind);
            }
        }
        cache.kinds_are(Some(sides));
        cache.has_changed();
        Ok(())
    }

    fn begin(&mut self, kind: &Kind) {
        let name = kind.name();
        self.ctx.cache.index.begin(&name);
        let api: Api<Meta> = Api::all_with(self.ctx.client.clone(), &kind.resource);
        let told = watcher(api, watches::config()).backoff(Backoff::default());
        let (told, handle) = abortable(told);
        self.running.insert(name.clone(), handle);
        self.told
            .push(told.map(move |told| (name.clone(), told)).boxed());
    }

    fn observe(&self, name: &str, told: &Told) {
        let cache = &self.ctx.cache;
        cache.see(name, told);
        match told {
            Ok(_) => cache.has_changed(),
            Err(error) => {
                tracing::debug!(kind = name, error = chain(error), "Failed to watch");
            }
        }
    }
}

// === impl Cache ===

impl Cache {
    /// What a namespace holds, as far as the watches know; nothing while one of them does not know.
    pub(crate) fn evidence(&self, namespace: &str) -> Option<ObservedGroups> {
        let kinds = self.kinds();
        let mut evidence = ObservedGroups::None;
        for (watch, side) in kinds.sides.as_ref()? {
            if self.index.count(watch, namespace)? > 0 {
                evidence = evidence.with(*side);
            }
        }
        Some(evidence)
    }

    pub(super) fn kinds_are(&self, sides: Option<BTreeMap<String, Side>>) {
        *self.kinds() = Kinds { sides };
    }
}
