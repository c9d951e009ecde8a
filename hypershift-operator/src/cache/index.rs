//! Versions of watched objects, by namespace: whether anything has changed, in a few bytes for each object.

use std::borrow::Cow;
use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::BuildHasher as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use api::names::control_plane_namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use kube::runtime::watcher::{self, Event};
use support::reconcile::is_missing;
use support::watch::watch_failed;
use tokio::sync::Notify;

use super::owner;

/// Watches of objects, by name. Those with a condition in their name hold only what fulfils it.
pub(crate) const HOSTED_CLUSTERS: &str = "hostedclusters";
/// HostedClusters in versions that change with what reconciles of NodePools read of them.
pub(crate) const POOL_INPUTS: &str = "hostedclusters, as NodePools read them";
pub(crate) const NODE_POOLS: &str = "nodepools";
/// NodePools in versions that change with what reconciles of HostedClusters read of them.
pub(crate) const CLUSTER_INPUTS: &str = "nodepools, as HostedClusters read them";
pub(crate) const NAMESPACES: &str = "namespaces";
pub(crate) const SECRETS: &str = "secrets";
pub(crate) const CONFIG_MAPS: &str = "configmaps";
pub(crate) const API_SERVER: &str = "endpoints, kubernetes";
pub(crate) const IGNITION_DEPLOYMENTS: &str = "deployments, ignition-server";
pub(crate) const IGNITION_SERVICES: &str = "services, ignition-server";
pub(crate) const IGNITION_PROXIES: &str = "services, ignition-server-proxy";
pub(crate) const IGNITION_ROUTES: &str = "routes, ignition-server";
pub(crate) const LEGACY: &str = "deployments, operator-legacy";
pub(crate) const ENDPOINT_SERVICES: &str = "awsendpointservices";
pub(crate) const AZURE_LINKS: &str = "azureprivatelinkservices";
pub(crate) const GCP_LINKS: &str = "gcpprivateserviceconnects";
/// Watches of what this operator has labelled.
pub(crate) const LABELLED: [&str; 8] = [
    "clusterrolebindings, labelled",
    "deployments, labelled",
    "hostedcontrolplanes, labelled",
    "networkpolicies, labelled",
    "rolebindings, labelled",
    "roles, labelled",
    "serviceaccounts, labelled",
    "clusterroles, labelled",
];
/// Those of [`LABELLED`] that may be in any namespace: they grant access to what is there, such as Agents.
pub(crate) const GRANTS: [&str; 2] = [LABELLED[4], LABELLED[5]];
/// The watches without which nothing is known. Kinds of Cluster API come and go ([`super::observed_groups`]).
pub(crate) const ALL: [&str; 24] = [
    HOSTED_CLUSTERS,
    POOL_INPUTS,
    NODE_POOLS,
    CLUSTER_INPUTS,
    NAMESPACES,
    SECRETS,
    CONFIG_MAPS,
    API_SERVER,
    IGNITION_DEPLOYMENTS,
    IGNITION_SERVICES,
    IGNITION_PROXIES,
    IGNITION_ROUTES,
    LEGACY,
    ENDPOINT_SERVICES,
    AZURE_LINKS,
    GCP_LINKS,
    LABELLED[0],
    LABELLED[1],
    LABELLED[2],
    LABELLED[3],
    LABELLED[4],
    LABELLED[5],
    LABELLED[6],
    LABELLED[7],
];

/// A watched object: watch, namespace and name.
pub(crate) type Object<'a> = (&'static str, &'a str, &'a str);

/// The version of an object that a watch in sync has, if the object exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Found(pub(super) Option<u64>);

/// The versions.
#[derive(Debug)]
pub(crate) struct Index {
    hasher: RandomState,
    watches: Mutex<BTreeMap<String, Watch>>,
    /// A watch has completed its list.
    synced: Notify,
}

/// Which objects of a control plane a reconcile depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// All of its namespace.
    All,
    /// Those that name the HostedCluster, in any namespace: their changes request its reconcile.
    Owned,
}

/// The versions of objects at some time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Snapshot {
    namespace: u64,
    which: Part,
    objects: Vec<(&'static str, Key)>,
    sum: u64,
}

type Key = (u64, u64);

#[derive(Debug, Default)]
struct Watch {
    state: State,
    /// Its kind may be absent: then there is no object of it.
    is_optional: bool,
    objects: Objects,
    /// A list that is not complete yet.
    listing: Objects,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    /// It has not listed yet, or lists again.
    #[default]
    Listing,
    Synced,
    /// Its objects may be out of date.
    Failed,
}

#[derive(Debug, Default)]
struct Objects {
    versions: HashMap<Key, Entry>,
    namespaces: HashMap<u64, Sums>,
}

/// The objects that count for a namespace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sums {
    /// How many are in it.
    count: usize,
    /// The sum of all versions.
    all: u64,
    /// The sum of the versions of those that are made for the control plane of this namespace.
    owned: u64,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    version: u64,
    /// The namespace of the control plane that the object is made for, which it counts for as well.
    owner: Option<u64>,
}

// === impl Index ===

impl Index {
    /// An index of these watches, none of which is in sync yet.
    pub(crate) fn new(watches: &[&str]) -> Self {
        let begun = |name: &&str| Watch {
            // A missing CRD of HostedClusters is an error, not an empty list.
            is_optional: ![HOSTED_CLUSTERS, POOL_INPUTS].contains(name),
            ..Watch::default()
        };
        let watches = watches.iter().map(|name| ((*name).to_owned(), begun(name)));
        Self {
            hasher: RandomState::new(),
            watches: Mutex::new(watches.collect()),
            synced: Notify::new(),
        }
    }

    /// A watch of a kind that is served has begun. Nothing is known until it has listed.
    pub(super) fn begin(&self, watch: &str) {
        let begun = Watch::default();
        self.watches().insert(watch.to_owned(), begun);
    }

    /// A watch has ended: its kind is gone.
    pub(super) fn end(&self, watch: &str) {
        self.watches().remove(watch);
    }

    /// Handles an event of a watch.
    pub(crate) fn observe<K: ResourceExt>(
        &self,
        watch: &str,
        event: &Result<Event<K>, watcher::Error>,
    ) {
        self.observe_as(watch, event, |object| Cow::Borrowed(object.meta()));
    }

    /// The same of objects in other versions than their resource versions. Returns whether the event is about a new
    /// version, or objects may have changed unnoticed.
    pub(super) fn observe_as<K>(
        &self,
        watch: &str,
        event: &Result<Event<K>, watcher::Error>,
        metadata: impl Fn(&K) -> Cow<'_, ObjectMeta>,
    ) -> bool {
        let name = watch;
        let mut watches = self.watches();
        let Some(watch) = watches.get_mut(name) else {
            return true;
        };
        let mut is_new = false;
        match event {
            Ok(Event::Init) => {
                watch.state = State::Listing;
                watch.listing = Objects::default();
            }
            Ok(Event::InitApply(object)) => {
                let (key, entry) = self.entry(&metadata(object), name);
                watch.listing.put(key, entry);
            }
            Ok(Event::InitDone) => {
                watch.objects = std::mem::take(&mut watch.listing);
                watch.state = State::Synced;
                self.wake();
                is_new = true;
            }
            Ok(Event::Apply(object)) => {
                let (key, entry) = self.entry(&metadata(object), name);
                is_new = watch.objects.put(key, entry);
                watch.resume();
            }
            Ok(Event::Delete(object)) => {
                let (key, _) = self.entry(&metadata(object), name);
                is_new = watch.objects.remove(key).is_some();
                watch.resume();
            }
            Err(watcher::Error::InitialListFailed(error))
                if watch.is_optional && is_missing(error) =>
            {
                // A kind that is not served has no objects.
                watch.objects = Objects::default();
                watch.state = State::Synced;
                self.wake();
            }
            Err(error) if watch_failed(error) => watch.state = State::Failed,
            // It resumes by itself.
            Err(_) => {}
        }
        is_new
    }

    /// Waits until `is_known` holds, which is checked whenever a watch has completed its list.
    pub(super) async fn until(&self, is_known: impl Fn() -> bool) {
        loop {
            let synced = self.synced.notified();
            if is_known() {
                return;
            }
            synced.await;
        }
    }

    /// Checks again what [`until`](Self::until) waits for.
    pub(super) fn wake(&self) {
        self.synced.notify_waiters();
    }

    /// Whether all watches are in sync.
    pub(super) fn is_all_synced(&self) -> bool {
        let watches = self.watches();
        watches.values().all(|it| it.state == State::Synced)
    }

    /// Whether a watch is in sync.
    pub(crate) fn is_synced(&self, watch: &str) -> bool {
        let watches = self.watches();
        watches
            .get(watch)
            .is_some_and(|it| it.state == State::Synced)
    }

    /// How many objects a watch has in a namespace; none while it is not in sync.
    pub(crate) fn count(&self, watch: &str, namespace: &str) -> Option<usize> {
        let watches = self.watches();
        let watch = watches.get(watch)?;
        let found = watch.objects.namespaces.get(&self.hash(namespace));
        (watch.state == State::Synced).then(|| found.map_or(0, |it| it.count))
    }

    /// The version of an object, if it exists; none while its watch is not in sync.
    pub(crate) fn version(&self, (watch, namespace, name): Object<'_>) -> Option<Found> {
        self.version_in(watch, namespace, name)
    }

    /// The same of a watch by name.
    pub(super) fn version_in(&self, watch: &str, namespace: &str, name: &str) -> Option<Found> {
        let key = (self.hash(namespace), self.hash(name));
        self.watches().get(watch)?.version(key)
    }

    /// The version of an object that was read.
    pub(super) fn version_of(&self, metadata: &ObjectMeta) -> u64 {
        self.version_at(self.key(metadata), metadata)
    }

    /// All versions that there are.
    pub(super) fn versions(&self) -> HashSet<u64> {
        let watches = self.watches();
        let objects = watches.values().flat_map(|it| it.objects.versions.values());
        objects.map(|entry| entry.version).collect()
    }

    /// The versions of the objects of a namespace; none while a watch is not in sync.
    pub(super) fn snapshot(&self, namespace: &str, which: Part) -> Option<Snapshot> {
        let namespace = self.hash(namespace);
        Some(Snapshot {
            namespace,
            which,
            objects: Vec::new(),
            sum: self.sum(namespace, which)?,
        })
    }

    /// The same with an object in a version that was read or written, which the watch may not have yet.
    pub(crate) fn with_version(
        &self,
        mut snapshot: Snapshot,
        watched: Object<'_>,
        version: u64,
    ) -> Snapshot {
        let (watch, namespace, name) = watched;
        let key = (self.hash(namespace), self.hash(name));
        let part = self.hash(&(watch, key, Found(Some(version))));
        snapshot.sum = snapshot.sum.wrapping_add(part);
        snapshot.objects.push((watch, key));
        snapshot
    }

    /// The same with more objects.
    pub(crate) fn also(&self, mut snapshot: Snapshot, objects: &[Object<'_>]) -> Option<Snapshot> {
        for &(watch, namespace, name) in objects {
            let key = (self.hash(namespace), self.hash(name));
            let part = self.part(watch, key)?;
            snapshot.sum = snapshot.sum.wrapping_add(part);
            snapshot.objects.push((watch, key));
        }
        snapshot.objects.shrink_to_fit();
        Some(snapshot)
    }

    /// Whether all versions are the same, and all watches in sync.
    pub(super) fn is_unchanged(&self, snapshot: &Snapshot) -> bool {
        let parts = snapshot.objects.iter();
        let sum = parts.fold(
            self.sum(snapshot.namespace, snapshot.which),
            |sum, &(watch, key)| Some(sum?.wrapping_add(self.part(watch, key)?)),
        );
        sum == Some(snapshot.sum)
    }

    /// One number for all objects of a namespace.
    fn sum(&self, namespace: u64, which: Part) -> Option<u64> {
        let watches = self.watches();
        let mut sum = 0_u64;
        for (name, watch) in watches.iter() {
            if watch.state != State::Synced {
                return None;
            }
            let sums = watch.objects.namespaces.get(&namespace);
            let part = sums.map_or(0, |sums| sums.of(which));
            // A watch without such objects adds nothing.
            if part != 0 {
                sum = sum.wrapping_add(self.hash(&(name, part)));
            }
        }
        Some(sum)
    }

    fn part(&self, watch: &'static str, key: Key) -> Option<u64> {
        let version = self.watches().get(watch)?.version(key)?;
        Some(self.hash(&(watch, key, version)))
    }

    /// Where an object is, and its version.
    fn entry(&self, metadata: &ObjectMeta, watch: &str) -> (Key, Entry) {
        let key = self.key(metadata);
        let version = self.version_at(key, metadata);
        let owner = owner(metadata, watch)
            .map(|it| self.hash(control_plane_namespace(&it.namespace, &it.name).as_str()));
        (key, Entry { version, owner })
    }

    fn key(&self, metadata: &ObjectMeta) -> Key {
        let text = |field: &Option<String>| self.hash(field.as_deref().unwrap_or_default());
        (text(&metadata.namespace), text(&metadata.name))
    }

    fn version_at(&self, key: Key, metadata: &ObjectMeta) -> u64 {
        self.hash(&(key, &metadata.uid, &metadata.resource_version))
    }

    pub(super) fn hash<T: std::hash::Hash + ?Sized>(&self, value: &T) -> u64 {
        self.hasher.hash_one(value)
    }

    fn watches(&self) -> MutexGuard<'_, BTreeMap<String, Watch>> {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Found ===

impl Found {
    /// Whether the object exists.
    pub(crate) fn exists(self) -> bool {
        self.0.is_some()
    }
}

// === impl Watch ===

impl Watch {
    fn version(&self, key: Key) -> Option<Found> {
        let found = self.objects.versions.get(&key);
        (self.state == State::Synced).then(|| Found(found.map(|entry| entry.version)))
    }

    /// A watch that failed after its list has an event again: it has missed nothing.
    fn resume(&mut self) {
        if self.state == State::Failed {
            self.state = State::Synced;
        }
    }
}

// === impl Objects ===

impl Objects {
    /// Whether it had another version, or none.
    fn put(&mut self, key: Key, entry: Entry) -> bool {
        let previous = self.remove(key);
        self.versions.insert(key, entry);
        self.add(key.0, 1, entry.version, 0);
        if let Some(owner) = entry.owner {
            let elsewhere = if owner == key.0 { 0 } else { entry.version };
            self.add(owner, 0, elsewhere, entry.version);
        }
        previous.is_none_or(|it| it.version != entry.version)
    }

    fn add(&mut self, namespace: u64, count: usize, all: u64, owned: u64) {
        let sums = self.namespaces.entry(namespace).or_default();
        sums.count += count;
        sums.all = sums.all.wrapping_add(all);
        sums.owned = sums.owned.wrapping_add(owned);
    }

    fn remove(&mut self, key: Key) -> Option<Entry> {
        let entry = self.versions.remove(&key)?;
        self.take(key.0, 1, entry.version, 0);
        if let Some(owner) = entry.owner {
            let elsewhere = if owner == key.0 { 0 } else { entry.version };
            self.take(owner, 0, elsewhere, entry.version);
        }
        Some(entry)
    }

    fn take(&mut self, namespace: u64, count: usize, all: u64, owned: u64) {
        if let Some(sums) = self.namespaces.get_mut(&namespace) {
            sums.count -= count;
            sums.all = sums.all.wrapping_sub(all);
            sums.owned = sums.owned.wrapping_sub(owned);
            if *sums == Sums::default() {
                self.namespaces.remove(&namespace);
            }
        }
    }
}

// === impl Sums ===

impl Sums {
    fn of(self, which: Part) -> u64 {
        match which {
            Part::All => self.all,
            Part::Owned => self.owned,
        }
    }
}

#[cfg(test)]
mod tests;
