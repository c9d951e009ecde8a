//! Which API groups hold the Cluster API objects of hosted clusters: reads, and never writes.
//!
//! A kind that has no CRD holds nothing. Everything else that keeps us from looking is an error, and never "nothing":
//! a cluster taken for new by mistake would get its machines twice.

mod kinds;
mod known;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use api::group::{GroupTable, Side};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use kube::Resource as _;
use kube::api::{DynamicObject, ListParams, Request};
use serde::Deserialize;
use tokio::sync::{Mutex, Semaphore};
use tokio::time::Instant;

use crate::control_plane_namespace::Namespace;
use crate::error::Error;
use crate::scope::Evidence;
use kinds::{Kind, Kinds};
use known::Known;

/// How long the kinds that were found may be used.
const KINDS_LIVE: Duration = Duration::from_secs(5);
/// Lists under way at once for one purpose.
const AT_ONCE: usize = 8;
/// Lists under way at once for all: each takes a connection, and connections take more memory than what they bring.
const AT_ONCE_FOR_ALL: usize = 16;
/// Objects in one page of a list.
const PAGE: u32 = 100;

/// Reads evidence.
pub struct Reader {
    client: kube::Client,
    table: GroupTable,
    kinds: Mutex<Option<(Instant, Arc<Kinds>)>>,
    doubted: AtomicBool,
    known: Known,
    free: Semaphore,
}

/// As much of a page of objects as is looked at: what managers have written about them is many times larger.
#[derive(Debug, Deserialize)]
struct Page {
    metadata: ListMeta,
    /// Of no object's metadata, API servers make `null`.
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
    /// Reads through `client`; nothing is asked yet.
    pub fn new(client: kube::Client, table: GroupTable) -> Self {
        Self {
            client,
            table,
            kinds: Mutex::new(None),
            doubted: false.into(),
            known: Known::default(),
            free: Semaphore::new(AT_ONCE_FOR_ALL),
        }
    }

    /// Nothing that was read counts any more: kinds and namespaces are looked at anew before they are used again.
    pub(crate) fn doubt(&self) {
        self.doubted.store(true, Ordering::Relaxed);
        self.known.forget();
    }

    /// What one namespace holds, of which annotations claim that it holds objects of one side only. If that is what was
    /// seen there not long ago, or if there was nothing yet that could contradict it, it is believed; for everything else,
    /// and for every doubt, it is looked at.
    pub(crate) async fn of_marked(
        &self,
        namespace: &Namespace,
        expected: Option<Side>,
    ) -> Result<Evidence, Error> {
        if namespace.is_foreign() {
            return Ok(Evidence::None);
        }
        let seen = self.known.of(namespace.name());
        match (seen, expected) {
            (Some(seen), Some(side))
                if seen == Evidence::None || seen == Evidence::None.with(side) =>
            {
                Ok(seen)
            }
            _ => self.of(namespace).await,
        }
    }

    /// What one namespace holds of a hosted cluster. The objects of another one say nothing about it, and are not read.
    pub async fn of(&self, namespace: &Namespace) -> Result<Evidence, Error> {
        if namespace.is_foreign() {
            return Ok(Evidence::None);
        }
        let namespace = namespace.name();
        let begun = Instant::now();
        let found = self.look(namespace).await?;
        self.known.saw(namespace, begun, found);
        Ok(found)
    }

    async fn look(&self, namespace: &str) -> Result<Evidence, Error> {
        let kinds = self.kinds().await?;
        let (standard, private) = tokio::try_join!(
            self.holds(&kinds, Side::Standard, namespace),
            self.holds(&kinds, Side::Private, namespace)
        )?;
        let sides = [(standard, Side::Standard), (private, Side::Private)];
        Ok(sides
            .into_iter()
            .filter(|(holds, _)| *holds)
            .fold(Evidence::None, |evidence, (_, side)| evidence.with(side)))
    }

    /// What each namespace holds. One that is not there holds nothing.
    pub(crate) async fn everywhere(&self) -> Result<HashMap<String, Evidence>, Error> {
        let begun = Instant::now();
        let found = self.look_everywhere().await;
        match &found {
            Ok(evidence) => self.known.saw_all(begun, evidence),
            // A right or a CRD is gone, perhaps: every pass finds that out for itself.
            Err(_) => self.known.forget(),
        }
        found
    }

    async fn look_everywhere(&self) -> Result<HashMap<String, Evidence>, Error> {
        self.doubted.store(true, Ordering::Relaxed);
        let kinds = self.kinds().await?;
        let found: Vec<_> = stream::iter(kinds.all())
            .map(|kind| self.namespaces(kind))
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await?;
        let mut evidence = HashMap::<String, Evidence>::new();
        for (side, namespaces) in found {
            for namespace in namespaces {
                let known = evidence.entry(namespace).or_default();
                *known = known.with(side);
            }
        }
        Ok(evidence)
    }

    /// Whether a namespace holds an object of any kind of a side.
    async fn holds(&self, kinds: &Kinds, side: Side, namespace: &str) -> Result<bool, Error> {
        // To the end, also when one has been found: whether the others can be read must not depend on it.
        let found: Vec<bool> = stream::iter(kinds.of(side))
            .map(|kind| self.is_in(kind, namespace))
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await?;
        Ok(found.contains(&true))
    }

    /// Whether a namespace holds an object of a kind.
    async fn is_in(&self, kind: Kind, namespace: &str) -> Result<bool, Error> {
        let params = ListParams::default().limit(1);
        let page = self.page(&kind, Some(namespace), &params).await;
        let page = page.map_err(Error::list(format!("{} in {namespace}", kind.name())))?;
        Ok(page.items.is_some_and(|items| !items.is_empty()))
    }

    /// The namespaces that hold objects of a kind, with the kind's side.
    async fn namespaces(&self, kind: Kind) -> Result<(Side, Vec<String>), Error> {
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
                None => return Ok((kind.side, namespaces)),
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
        let _permit = self.free.acquire().await;
        let path = DynamicObject::url_path(&kind.resource, namespace);
        let request = Request::new(path).list_metadata(params);
        let request = request.map_err(kube::Error::BuildRequest)?;
        self.client.request(request).await
    }

    async fn kinds(&self) -> Result<Arc<Kinds>, Error> {
        let mut cached = self.kinds.lock().await;
        let doubted = self.doubted.swap(false, Ordering::Relaxed);
        if let Some((at, kinds)) = &*cached
            && !doubted
            && at.elapsed() < KINDS_LIVE
        {
            return Ok(Arc::clone(kinds));
        }
        *cached = None;
        let kinds = Arc::new(kinds::discover(&self.client, &self.table).await?);
        *cached = Some((Instant::now(), Arc::clone(&kinds)));
        Ok(kinds)
    }
}
