//! Versions of watched objects, by namespace: whether anything has changed, in a few bytes for each object.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::BuildHasher as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use kube::runtime::watcher::{self, Event};
use support::reconcile::is_missing;
use support::watch::watch_failed;

use super::control_plane;

/// Watches of objects, by name. Those with a condition in their name hold only what fulfils it.
pub(crate) const HOSTED_CLUSTERS: &str = "hostedclusters";
pub(crate) const NODE_POOLS: &str = "nodepools";
pub(crate) const NAMESPACES: &str = "namespaces";
pub(crate) const SECRETS: &str = "secrets";
pub(crate) const CONFIG_MAPS: &str = "configmaps";
pub(crate) const API_SERVER: &str = "endpoints, kubernetes";
pub(crate) const IGNITION_DEPLOYMENTS: &str = "deployments, ignition-server";
pub(crate) const IGNITION_SERVICES: &str = "services, ignition-server";
pub(crate) const IGNITION_PROXIES: &str = "services, ignition-server-proxy";
pub(crate) const IGNITION_ROUTES: &str = "routes, ignition-server";
pub(crate) const LEGACY: &str = "deployments, operator-legacy";
/// Watches of what this operator has labelled.
pub(crate) const LABELLED: [&str; 7] = [
    "clusterrolebindings, labelled",
    "deployments, labelled",
    "hostedcontrolplanes, labelled",
    "networkpolicies, labelled",
    "rolebindings, labelled",
    "roles, labelled",
    "serviceaccounts, labelled",
];
/// The watches without which nothing is known. Kinds of Cluster API come and go ([`super::evidence`]).
pub(crate) const ALL: [&str; 18] = [
    HOSTED_CLUSTERS,
    NODE_POOLS,
    NAMESPACES,
    SECRETS,
    CONFIG_MAPS,
    API_SERVER,
    IGNITION_DEPLOYMENTS,
    IGNITION_SERVICES,
    IGNITION_PROXIES,
    IGNITION_ROUTES,
    LEGACY,
    LABELLED[0],
    LABELLED[1],
    LABELLED[2],
    LABELLED[3],
    LABELLED[4],
    LABELLED[5],
    LABELLED[6],
];

/// A watched object: watch, namespace and name.
pub(crate) type Object<'a> = (&'static str, &'a str, &'a str);

/// The versions.
#[derive(Debug)]
pub(crate) struct Index {
    hasher: RandomState,
    watches: Mutex<BTreeMap<String, Watch>>,
}

/// What the watches knew at some time of a namespace and of some objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Look {
    namespace: u64,
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
    /// What it knew may be out of date.
    Failed,
}

#[derive(Debug, Default)]
struct Objects {
    versions: HashMap<Key, Entry>,
    /// For each namespace, how many are in it, and the sum of the versions that count for it.
    namespaces: HashMap<u64, (usize, u64)>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    version: u64,
    /// The namespace of the control plane that the object is for, which it counts for as well. Else its own.
    owner: u64,
}

// === impl Index ===

impl Index {
    /// Nothing is known until these have listed.
    pub(crate) fn new(watches: &[&str]) -> Self {
        let begun = || Watch {
            is_optional: true,
            ..Watch::default()
        };
        let watches = watches.iter().map(|name| ((*name).to_owned(), begun()));
        Self {
            hasher: RandomState::new(),
            watches: Mutex::new(watches.collect()),
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

    /// A watch has told something.
    pub(crate) fn observe<K: ResourceExt>(
        &self,
        watch: &str,
        told: &Result<Event<K>, watcher::Error>,
    ) {
        let mut watches = self.watches();
        let Some(watch) = watches.get_mut(watch) else {
            return;
        };
        match told {
            Ok(Event::Init) => {
                watch.state = State::Listing;
                watch.listing = Objects::default();
            }
            Ok(Event::InitApply(object)) => {
                let (key, entry) = self.entry(object.meta());
                watch.listing.put(key, entry);
            }
            Ok(Event::InitDone) => {
                watch.objects = std::mem::take(&mut watch.listing);
                watch.state = State::Synced;
            }
            Ok(Event::Apply(object)) => {
                let (key, entry) = self.entry(object.meta());
                watch.objects.put(key, entry);
                watch.goes_on();
            }
            Ok(Event::Delete(object)) => {
                let (key, _) = self.entry(object.meta());
                watch.objects.remove(key);
                watch.goes_on();
            }
            Err(watcher::Error::InitialListFailed(error))
                if watch.is_optional && is_missing(error) =>
            {
                // Where the kind is not, its objects are not.
                watch.objects = Objects::default();
                watch.state = State::Synced;
            }
            Err(error) if watch_failed(error) => watch.state = State::Failed,
            // It goes on where it was.
            Err(_) => {}
        }
    }

    /// Whether a watch knows all its objects.
    pub(crate) fn is_synced(&self, watch: &str) -> bool {
        let watches = self.watches();
        watches
            .get(watch)
            .is_some_and(|it| it.state == State::Synced)
    }

    /// How many objects a watch has in a namespace; nothing while it does not know.
    pub(crate) fn count(&self, watch: &str, namespace: &str) -> Option<usize> {
        let watches = self.watches();
        let watch = watches.get(watch)?;
        let found = watch.objects.namespaces.get(&self.hash(namespace));
        (watch.state == State::Synced).then(|| found.map_or(0, |(count, _)| *count))
    }

    /// The version of an object, if it is there; nothing while its watch does not know.
    pub(crate) fn version(&self, (watch, namespace, name): Object<'_>) -> Option<Option<u64>> {
        self.version_in(watch, namespace, name)
    }

    /// The same of a watch by name.
    pub(super) fn version_in(
        &self,
        watch: &str,
        namespace: &str,
        name: &str,
    ) -> Option<Option<u64>> {
        let key = (self.hash(namespace), self.hash(name));
        self.watches().get(watch)?.version(key)
    }

    /// The version of an object that was read.
    pub(super) fn version_of(&self, metadata: &ObjectMeta) -> u64 {
        self.entry(metadata).1.version
    }

    /// All versions that there are.
    pub(super) fn versions(&self) -> HashSet<u64> {
        let watches = self.watches();
        let objects = watches.values().flat_map(|it| it.objects.versions.values());
        objects.map(|entry| entry.version).collect()
    }

    /// What all watches know of a namespace; nothing while one of them does not know.
    pub(super) fn look(&self, namespace: &str) -> Option<Look> {
        let namespace = self.hash(namespace);
        Some(Look {
            namespace,
            objects: Vec::new(),
            sum: self.sum(namespace)?,
        })
    }

    /// The same with objects of other namespaces.
    pub(crate) fn also(&self, mut look: Look, objects: &[Object<'_>]) -> Option<Look> {
        for &(watch, namespace, name) in objects {
            let key = (self.hash(namespace), self.hash(name));
            let part = self.part(watch, key)?;
            look.sum = look.sum.wrapping_add(part);
            look.objects.push((watch, key));
        }
        look.objects.shrink_to_fit();
        Some(look)
    }

    /// Whether all of it is as it was, and every watch knows.
    pub(super) fn is_unchanged(&self, look: &Look) -> bool {
        let parts = look.objects.iter();
        let sum = parts.fold(self.sum(look.namespace), |sum, &(watch, key)| {
            Some(sum?.wrapping_add(self.part(watch, key)?))
        });
        sum == Some(look.sum)
    }

    /// One number for all objects of a namespace.
    fn sum(&self, namespace: u64) -> Option<u64> {
        let watches = self.watches();
        let mut sum = 0_u64;
        for (name, watch) in watches.iter() {
            if watch.state != State::Synced {
                return None;
            }
            if let Some((_, found)) = watch.objects.namespaces.get(&namespace) {
                sum = sum.wrapping_add(self.hash(&(name, found)));
            }
        }
        Some(sum)
    }

    fn part(&self, watch: &'static str, key: Key) -> Option<u64> {
        let version = self.watches().get(watch)?.version(key)?;
        Some(self.hash(&(watch, key, version)))
    }

    /// Where an object is, and its version.
    fn entry(&self, metadata: &ObjectMeta) -> (Key, Entry) {
        let text = |field: &Option<String>| self.hash(field.as_deref().unwrap_or_default());
        let key = (text(&metadata.namespace), text(&metadata.name));
        let version = self.hash(&(key, &metadata.uid, &metadata.resource_version));
        let owner = control_plane(metadata).map(|owner| self.hash(owner.as_str()));
        let owner = owner.unwrap_or(key.0);
        (key, Entry { version, owner })
    }

    pub(super) fn hash<T: std::hash::Hash + ?Sized>(&self, value: &T) -> u64 {
        self.hasher.hash_one(value)
    }

    fn watches(&self) -> MutexGuard<'_, BTreeMap<String, Watch>> {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Watch ===

impl Watch {
    fn version(&self, key: Key) -> Option<Option<u64>> {
        let found = self.objects.versions.get(&key);
        (self.state == State::Synced).then(|| found.map(|entry| entry.version))
    }

    /// A watch that failed after its list tells again: it has missed nothing.
    fn goes_on(&mut self) {
        if self.state == State::Failed {
            self.state = State::Synced;
        }
    }
}

// === impl Objects ===

impl Objects {
    fn put(&mut self, key: Key, entry: Entry) {
        self.remove(key);
        self.versions.insert(key, entry);
        let (count, sum) = self.namespaces.entry(key.0).or_default();
        *count += 1;
        *sum = sum.wrapping_add(entry.version);
        if entry.owner != key.0 {
            let (_, sum) = self.namespaces.entry(entry.owner).or_default();
            *sum = sum.wrapping_add(entry.version);
        }
    }

    fn remove(&mut self, key: Key) {
        let Some(entry) = self.versions.remove(&key) else {
            return;
        };
        self.take(key.0, 1, entry.version);
        if entry.owner != key.0 {
            self.take(entry.owner, 0, entry.version);
        }
    }

    fn take(&mut self, namespace: u64, objects: usize, version: u64) {
        if let Some((count, sum)) = self.namespaces.get_mut(&namespace) {
            *count -= objects;
            *sum = sum.wrapping_sub(version);
            if (*count, *sum) == (0, 0) {
                self.namespaces.remove(&namespace);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::api::DynamicObject;
    use kube::core::Status;
    use serde_json::json;

    use super::*;

    const WATCHES: [&str; 2] = [SECRETS, CONFIG_MAPS];

    fn object(namespace: &str, name: &str, version: &str) -> DynamicObject {
        let metadata = json!({
            "namespace": namespace, "name": name, "uid": name, "resourceVersion": version,
        });
        serde_json::from_value(json!({ "metadata": metadata })).unwrap()
    }

    fn refused(code: u16) -> kube::Error {
        kube::Error::Api(Box::new(Status::failure("", "").with_code(code)))
    }

    fn list(index: &Index, watch: &str, objects: Vec<DynamicObject>) {
        index.observe::<DynamicObject>(watch, &Ok(Event::Init));
        for object in objects {
            index.observe(watch, &Ok(Event::InitApply(object)));
        }
        index.observe::<DynamicObject>(watch, &Ok(Event::InitDone));
    }

    fn synced() -> Index {
        let index = Index::new(&WATCHES);
        list(&index, SECRETS, vec![object("a", "s", "1")]);
        list(&index, CONFIG_MAPS, vec![object("a", "m", "1")]);
        index
    }

    /// An unsynced or failed watch is not an empty list.
    #[test]
    fn a_watch_that_does_not_know_is_unknown_and_not_empty() {
        let index = Index::new(&WATCHES);
        let is_unknown = |index: &Index| {
            index.look("a").is_none()
                && index.count(SECRETS, "a").is_none()
                && index.version((SECRETS, "a", "s")).is_none()
        };
        list(&index, CONFIG_MAPS, Vec::new());
        assert!(is_unknown(&index), "it has not begun");
        index.observe::<DynamicObject>(SECRETS, &Ok(Event::Init));
        index.observe(SECRETS, &Ok(Event::InitApply(object("a", "s", "1"))));
        assert!(is_unknown(&index), "it has not listed to the end");
        let failed = Err(watcher::Error::InitialListFailed(refused(403)));
        index.observe::<DynamicObject>(SECRETS, &failed);
        assert!(is_unknown(&index), "its list is forbidden");
        list(&index, SECRETS, vec![object("a", "s", "1")]);
        assert_eq!(index.count(SECRETS, "a"), Some(1));
        let failed = Err(watcher::Error::WatchStartFailed(refused(403)));
        index.observe::<DynamicObject>(SECRETS, &failed);
        assert!(is_unknown(&index), "it may not watch any more");
        index.observe(SECRETS, &Ok(Event::Apply(object("a", "t", "2"))));
        assert_eq!(index.count(SECRETS, "a"), Some(2), "it tells again");
        index.observe::<DynamicObject>(SECRETS, &Ok(Event::Init));
        assert!(is_unknown(&index), "it lists again");
        let absent = Err(watcher::Error::InitialListFailed(refused(404)));
        index.observe::<DynamicObject>(SECRETS, &absent);
        assert_eq!(index.count(SECRETS, "a"), Some(0), "there is no such kind");
    }

    #[test]
    fn every_change_of_a_namespace_is_seen_and_no_other() {
        let changes: [(&str, &str, Event<DynamicObject>, bool); 6] = [
            (
                "changed",
                SECRETS,
                Event::Apply(object("a", "s", "2")),
                true,
            ),
            (
                "made",
                CONFIG_MAPS,
                Event::Apply(object("a", "n", "1")),
                true,
            ),
            (
                "gone",
                CONFIG_MAPS,
                Event::Delete(object("a", "m", "3")),
                true,
            ),
            ("again", SECRETS, Event::Apply(object("a", "s", "1")), false),
            (
                "elsewhere",
                SECRETS,
                Event::Apply(object("b", "s", "1")),
                false,
            ),
            (
                "not there",
                SECRETS,
                Event::Delete(object("a", "x", "1")),
                false,
            ),
        ];
        for (name, watch, event, expected) in changes {
            let index = synced();
            let look = index.look("a").unwrap();
            index.observe(watch, &Ok(event));
            assert_eq!(!index.is_unchanged(&look), expected, "{name}");
        }
        let index = synced();
        let look = index.look("a").unwrap();
        list(&index, SECRETS, vec![object("a", "s", "1")]);
        assert!(index.is_unchanged(&look), "it was listed again");
        list(&index, SECRETS, Vec::new());
        assert!(!index.is_unchanged(&look), "it was gone when it was listed");
    }

    #[test]
    fn single_objects_of_other_namespaces_are_seen() {
        let index = synced();
        let named = |name| index.also(index.look("a").unwrap(), &[(SECRETS, "home", name)]);
        let (pull, other) = (named("pull").unwrap(), named("other").unwrap());
        assert!(index.is_unchanged(&pull) && index.is_unchanged(&other));
        index.observe(SECRETS, &Ok(Event::Apply(object("home", "pull", "1"))));
        assert!(!index.is_unchanged(&pull) && index.is_unchanged(&other));
        let known = named("pull").unwrap();
        index.observe(SECRETS, &Ok(Event::Delete(object("home", "pull", "2"))));
        assert!(!index.is_unchanged(&known));
        assert!(index.is_unchanged(&pull), "as at first");
    }

    #[test]
    fn kinds_come_and_go() {
        let index = synced();
        let look = index.look("a").unwrap();
        index.begin("machines");
        assert!(!index.is_unchanged(&look), "it has not listed yet");
        let absent = Err(watcher::Error::InitialListFailed(refused(404)));
        index.observe::<DynamicObject>("machines", &absent);
        assert_eq!(index.count("machines", "a"), None, "its CRD is there");
        list(&index, "machines", Vec::new());
        assert!(index.is_unchanged(&look));
        list(&index, "machines", vec![object("a", "m", "1")]);
        assert!(!index.is_unchanged(&look));
        index.end("machines");
        assert!(index.is_unchanged(&look));
        assert_eq!(index.count("machines", "a"), None);
    }

    /// What is made for a control plane elsewhere counts for its namespace, too.
    #[test]
    fn objects_of_a_control_plane_count_for_it_wherever_they_are() {
        let annotated = |namespace: Option<&str>, version: &str| {
            let mut object = object("", "b", version);
            object.metadata.namespace = namespace.map(str::to_owned);
            let key = "hypershift.openshift.io/cluster".to_owned();
            object.metadata.annotations = Some([(key, "clusters/one".to_owned())].into());
            object
        };
        for namespace in [None, Some("clusters"), Some("clusters-one")] {
            let index = Index::new(&[SECRETS]);
            list(&index, SECRETS, vec![annotated(namespace, "1")]);
            let look = index.look("clusters-one").unwrap();
            index.observe(SECRETS, &Ok(Event::Apply(annotated(namespace, "2"))));
            assert!(!index.is_unchanged(&look), "{namespace:?} is changed");
            let look = index.look("clusters-one").unwrap();
            index.observe(SECRETS, &Ok(Event::Delete(annotated(namespace, "2"))));
            assert!(!index.is_unchanged(&look), "{namespace:?} is deleted");
            let inside = usize::from(namespace == Some("clusters-one"));
            list(&index, SECRETS, vec![annotated(namespace, "1")]);
            assert_eq!(index.count(SECRETS, "clusters-one"), Some(inside));
        }
    }
}
