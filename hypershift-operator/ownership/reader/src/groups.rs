//! Which API groups hold the Cluster API objects of hosted clusters.
//!
//! A kind without a CRD has no objects. Every other reason why objects cannot be listed is an error, and never an empty
//! result: a cluster that is taken for new by mistake would get its machines twice.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use api::group::{CapiTypes, GroupTable};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use kube::Resource as _;
use kube::api::{DynamicObject, ListParams, Request};
use serde::Deserialize;
use tokio::sync::{Mutex, Semaphore};
use tokio::time::Instant;

use ownership::{Namespace, ObservedGroups};

use crate::Error;
use crate::cache::Cache;
use crate::kinds::{self, Kind, Kinds};

/// How long the kinds that were discovered are used.
const KINDS_LIFETIME: Duration = Duration::from_secs(5);
/// Concurrent lists of one call.
const CONCURRENCY: usize = 8;
/// Concurrent lists of all calls: each takes a connection, which takes more memory than what is read.
const MAX_CONCURRENCY: usize = 16;
/// Objects in one page of a list.
const PAGE: u32 = 100;

/// Observes the API groups that hold objects, and caches what was observed.
pub struct Reader {
    client: kube::Client,
    table: GroupTable,
    kinds: Mutex<Option<(Instant, Arc<Kinds>)>>,
    is_stale: AtomicBool,
    cache: Cache,
    permits: Semaphore,
}

/// The fields of a page of objects that are read: their managed fields are many times larger.
#[derive(Debug, Deserialize)]
struct Page {
    metadata: ListMeta,
    /// `null` if there are no objects.
    items: Option<Vec<Item>>,
}

#[derive(Debug, Deserialize)]
struct Item {
    metadata: Place,
}

#[derive(Debug, Deserialize)]
struct Place {
    namespace: Option<String>,
}

// === impl Reader ===

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").finish_non_exhaustive()
    }
}

impl Reader {
    /// A reader of the groups of the table. It sends no request yet.
    pub fn new(client: kube::Client, table: GroupTable) -> Self {
        Self {
            client,
            table,
            kinds: Mutex::new(None),
            is_stale: false.into(),
            cache: Cache::default(),
            permits: Semaphore::new(MAX_CONCURRENCY),
        }
    }

    /// Invalidates everything that was read: kinds and namespaces are read again before they are used.
    pub fn invalidate(&self) {
        self.is_stale.store(true, Ordering::Relaxed);
        self.cache.clear();
    }

    /// The kinds of Cluster API that exist now, for watches.
    pub async fn discover(&self) -> Result<Vec<Kind>, Error> {
        let kinds = kinds::discover(&self.client, &self.table).await?;
        Ok(kinds.all())
    }

    /// The groups of one namespace, if the annotations claim that it has objects of one of the types only. The cache is
    /// used if it agrees with the claim, or if there were no objects that could contradict it. Everything else is read.
    pub async fn of_annotated(
        &self,
        namespace: &Namespace,
        expected: Option<CapiTypes>,
    ) -> Result<ObservedGroups, Error> {
        if namespace.is_foreign() {
            return Ok(ObservedGroups::None);
        }
        let cached = self.cache.get(namespace.name());
        match (cached, expected) {
            (Some(cached), Some(types))
                if cached == ObservedGroups::None || cached == ObservedGroups::None.with(types) =>
            {
                Ok(cached)
            }
            _ => self.of(namespace).await,
        }
    }

    /// The groups of one namespace. In a namespace of another HostedCluster nothing is read, since its objects do not
    /// count.
    pub async fn of(&self, namespace: &Namespace) -> Result<ObservedGroups, Error> {
        if namespace.is_foreign() {
            return Ok(ObservedGroups::None);
        }
        let namespace = namespace.name();
        let started = Instant::now();
        let found = self.read(namespace).await?;
        self.cache.insert(namespace, started, found);
        Ok(found)
    }

    async fn read(&self, namespace: &str) -> Result<ObservedGroups, Error> {
        let kinds = self.kinds().await?;
        let (standard, private) = tokio::try_join!(
            self.holds(&kinds, CapiTypes::Standard, namespace),
            self.holds(&kinds, CapiTypes::Private, namespace)
        )?;
        let types = [
            (standard, CapiTypes::Standard),
            (private, CapiTypes::Private),
        ];
        Ok(types
            .into_iter()
            .filter(|(holds, _)| *holds)
            .fold(ObservedGroups::None, |observed, (_, types)| {
                observed.with(types)
            }))
    }

    /// The groups of each namespace. Namespaces without objects are not in the map.
    pub async fn everywhere(&self) -> Result<HashMap<String, ObservedGroups>, Error> {
        let started = Instant::now();
        let found = self.read_everywhere().await;
        match &found {
            Ok(observed) => self.cache.replace(started, observed),
            // RBAC or a CRD may be missing: each pass reads again and fails with its own error.
            Err(_) => self.cache.clear(),
        }
        found
    }

    async fn read_everywhere(&self) -> Result<HashMap<String, ObservedGroups>, Error> {
        self.is_stale.store(true, Ordering::Relaxed);
        let kinds = self.kinds().await?;
        let found: Vec<_> = stream::iter(kinds.all())
            .map(|kind| self.namespaces(kind))
            .buffer_unordered(CONCURRENCY)
            .try_collect()
            .await?;
        let mut observed = HashMap::<String, ObservedGroups>::new();
        for (types, namespaces) in found {
            for namespace in namespaces {
                let groups = observed.entry(namespace).or_default();
                *groups = groups.with(types);
            }
        }
        Ok(observed)
    }

    /// Whether a namespace has an object of any kind of these types.
    async fn holds(&self, kinds: &Kinds, types: CapiTypes, namespace: &str) -> Result<bool, Error> {
        // All kinds are listed even if one has objects: whether the others can be listed must not depend on it.
        let found: Vec<bool> = stream::iter(kinds.of(types))
            .map(|kind| self.has_objects(kind, namespace))
            .buffer_unordered(CONCURRENCY)
            .try_collect()
            .await?;
        Ok(found.contains(&true))
    }

    /// Whether a namespace has an object of a kind.
    async fn has_objects(&self, kind: Kind, namespace: &str) -> Result<bool, Error> {
        let params = ListParams::default().limit(1);
        let page = self.page(&kind, Some(namespace), &params).await;
        let page = page.map_err(Error::list(format!("{} in {namespace}", kind.name())))?;
        Ok(page.items.is_some_and(|items| !items.is_empty()))
    }

    /// The namespaces that have objects of a kind, and the types of the kind.
    async fn namespaces(&self, kind: Kind) -> Result<(CapiTypes, Vec<String>), Error> {
        let mut params = ListParams::default().limit(PAGE);
        let mut namespaces = Vec::new();
        loop {
            let page = self.page(&kind, None, &params).await;
            let page = page.map_err(Error::list(kind.name()))?;
            let items = page.items.into_iter().flatten();
            namespaces.extend(items.filter_map(|item| item.metadata.namespace));
            namespaces.dedup();
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok((kind.capi_types, namespaces)),
            }
        }
    }

    /// One page of metadata.
    async fn page(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        params: &ListParams,
    ) -> kube::Result<Page> {
        let _permit = self.permits.acquire().await;
        let path = DynamicObject::url_path(&kind.resource, namespace);
        let request = Request::new(path).list_metadata(params);
        let request = request.map_err(kube::Error::BuildRequest)?;
        self.client.request(request).await
    }

    async fn kinds(&self) -> Result<Arc<Kinds>, Error> {
        let mut cached = self.kinds.lock().await;
        let is_stale = self.is_stale.swap(false, Ordering::Relaxed);
        if let Some((at, kinds)) = &*cached
            && !is_stale
            && at.elapsed() < KINDS_LIFETIME
        {
            return Ok(Arc::clone(kinds));
        }
        *cached = None;
        let kinds = Arc::new(kinds::discover(&self.client, &self.table).await?);
        *cached = Some((Instant::now(), Arc::clone(&kinds)));
        Ok(kinds)
    }
}
