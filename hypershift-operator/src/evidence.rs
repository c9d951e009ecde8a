//! Which API groups hold the Cluster API objects of hosted clusters: reads, and never writes.
//!
//! A kind that has no CRD holds nothing. Everything else that keeps us from looking is an error, and never "nothing":
//! a cluster taken for new by mistake would get its machines twice.

mod kinds;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use api::group::{GroupTable, Side};
use futures::{StreamExt, TryStreamExt, stream};
use kube::Api;
use kube::api::{DynamicObject, ListParams};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::error::Error;
use crate::scope::Evidence;
use kinds::{Kind, Kinds};

/// How long the kinds that were found may be used.
const KINDS_LIVE: Duration = Duration::from_secs(5);
/// Lists under way at once.
const AT_ONCE: usize = 8;
/// Objects in one page of a list.
const PAGE: u32 = 500;

/// Reads evidence.
pub struct Reader {
    client: kube::Client,
    table: GroupTable,
    kinds: Mutex<Option<(Instant, Arc<Kinds>)>>,
    doubted: AtomicBool,
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
        }
    }

    /// The kinds are looked up anew before they are used again.
    pub(crate) fn doubt(&self) {
        self.doubted.store(true, Ordering::Relaxed);
    }

    /// What one namespace holds.
    pub async fn of(&self, namespace: &str) -> Result<Evidence, Error> {
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
        self.doubt();
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
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), namespace, &kind.resource);
        let list = api.list_metadata(&ListParams::default().limit(1)).await;
        let list = list.map_err(Error::list(format!("{} in {namespace}", kind.name())))?;
        Ok(!list.items.is_empty())
    }

    /// The namespaces that hold objects of a kind, with the kind's side.
    async fn namespaces(&self, kind: Kind) -> Result<(Side, Vec<String>), Error> {
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &kind.resource);
        let mut params = ListParams::default().limit(PAGE);
        let mut namespaces = Vec::new();
        loop {
            let list = api.list_metadata(&params).await;
            let list = list.map_err(Error::list(kind.name()))?;
            namespaces.extend(
                list.items
                    .into_iter()
                    .filter_map(|object| object.metadata.namespace),
            );
            namespaces.dedup();
            match list.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok((kind.side, namespaces)),
            }
        }
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
