//! Watches the metadata of all kinds of Cluster API, standard and private: which namespaces have objects of which types,
//! without a request.
//!
//! Kinds come and go with their CRDs, which are watched, too. While a watch is not in sync, the observed groups of all
//! namespaces are unknown, and are read with requests.

use std::collections::BTreeMap;
use std::time::Duration;

use api::group::CapiTypes;
use futures::stream::{AbortHandle, SelectAll, abortable};
use futures::{StreamExt as _, stream::BoxStream};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject};
use kube::core::PartialObjectMeta;
use kube::{Api, Client};
use support::error::chain;
use support::reconcile::{Backoff, Report as _};
use support::shutdown::Drain;
use tokio::time::{Instant, sleep_until};

use super::Cache;
use crate::error::Error;
use crate::watches::{self, Lenient, WatchResult};
use ownership::ObservedGroups;
use ownership_reader::{Kind, Reader};

/// CRDs are installed together.
const DEBOUNCE: Duration = Duration::from_secs(1);

type Meta = PartialObjectMeta<DynamicObject>;

/// The watched kinds.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    /// Each watch's name, and the types of its kind; none before the kinds are discovered.
    capi_types: Option<BTreeMap<String, CapiTypes>>,
}

/// The watches of one term.
struct Watches<'a> {
    client: &'a Client,
    reader: &'a Reader,
    cache: &'a Cache,
    running: BTreeMap<String, AbortHandle>,
    events: SelectAll<BoxStream<'static, (String, WatchResult<Meta>)>>,
}

/// Watches until the shutdown begins.
pub(crate) async fn run(client: &Client, reader: &Reader, cache: &Cache, mut drain: Drain) {
    let crds: Api<PartialObjectMeta<CustomResourceDefinition>> = Api::all(client.clone());
    let crds = watches::watch(crds, watches::config());
    let mut crds = std::pin::pin!(crds);
    let mut watches = Watches {
        client,
        reader,
        cache,
        running: BTreeMap::new(),
        events: SelectAll::new(),
    };
    let mut backoff = Backoff::default();
    let mut due = None;
    loop {
        tokio::select! {
            biased;
            () = drain.begun() => return,
            Some(event) = crds.next() => match event {
                Ok(_) => {
                    cache.crd_changed();
                    due = due.or(Some(Instant::now() + DEBOUNCE));
                }
                Err(error) if support::watch::watch_failed(&error) => {
                    tracing::debug!(error = chain(&error), "Failed to watch CustomResourceDefinitions");
                    cache.set_kinds(None);
                    due = due.or(Some(Instant::now() + DEBOUNCE));
                }
                Err(_) => {}
            },
            Some((name, event)) = watches.events.next() => watches.observe(&name, &event),
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                due = match watches.discover().await {
                    Ok(()) => {
                        backoff = Backoff::default();
                        None
                    }
                    Err(error) => {
                        cache.set_kinds(None);
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
        let kinds = self.reader.discover().await?;
        let types = kinds
            .iter()
            .map(|kind| (kind.name(), kind.capi_types))
            .collect();
        let cache = self.cache;
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
        cache.set_kinds(Some(types));
        cache.notify_changed();
        Ok(())
    }

    fn begin(&mut self, kind: &Kind) {
        let name = kind.name();
        self.cache.index.begin(&name);
        let api: Api<Lenient<Meta>> = Api::all_with(self.client.clone(), &kind.resource);
        let events = watches::readable(watches::watch(api, watches::checked(watches::config())));
        let (events, handle) = abortable(events);
        self.running.insert(name.clone(), handle);
        self.events
            .push(events.map(move |event| (name.clone(), event)).boxed());
    }

    fn observe(&self, name: &str, event: &WatchResult<Meta>) {
        let cache = self.cache;
        cache.see(name, event);
        cache.notify_changed();
        if let Err(error) = event {
            tracing::debug!(kind = name, error = chain(error), "Failed to watch");
        }
    }
}

// === impl Kinds ===

impl Kinds {
    pub(super) fn are_known(&self) -> bool {
        self.capi_types.is_some()
    }
}

// === impl Cache ===

impl Cache {
    /// The observed groups of a namespace; none while a watch is not in sync.
    pub(crate) fn observed_groups(&self, namespace: &str) -> Option<ObservedGroups> {
        let kinds = self.kinds();
        let mut observed_groups = ObservedGroups::None;
        for (watch, types) in kinds.capi_types.as_ref()? {
            if self.index.count(watch, namespace)? > 0 {
                observed_groups = observed_groups.with(*types);
            }
        }
        Some(observed_groups)
    }

    /// The CRDs of these kinds that do not exist, by name; none while the kinds are not known.
    pub(crate) fn missing_crds(&self, kinds: &[ApiResource]) -> Vec<String> {
        let known = self.kinds();
        let Some(known) = &known.capi_types else {
            return Vec::new();
        };
        let names = kinds.iter().map(|it| format!("{}.{}", it.plural, it.group));
        names.filter(|name| !known.contains_key(name)).collect()
    }

    pub(super) fn set_kinds(&self, capi_types: Option<BTreeMap<String, CapiTypes>>) {
        *self.kinds() = Kinds { capi_types };
        self.index.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capi::Capi;

    #[test]
    fn crds_are_missing_only_if_the_kinds_are_known() {
        let cache = Cache::new();
        let capi = Capi::new(CapiTypes::Private);
        let kinds = [capi.cluster(), capi.machine()];
        assert_eq!(cache.missing_crds(&kinds), [""; 0], "not known");
        let name = |it: &ApiResource| format!("{}.{}", it.plural, it.group);
        let served = |types| (name(&Capi::new(types).cluster()), types);
        let both = [served(CapiTypes::Standard), served(CapiTypes::Private)];
        cache.set_kinds(Some(both.into()));
        assert_eq!(cache.missing_crds(&kinds), [name(&capi.machine())]);
        cache.set_kinds(None);
        assert_eq!(cache.missing_crds(&kinds), [""; 0], "not known any more");
    }
}
