//! What there is of hosted clusters and node pools, counted for metrics under the names that dashboards and alerts know.
//!
//! The leader counts what its watches have, now and then; `clusters` and `pools` make samples of what they find, purely, and
//! `collect` writes the samples when somebody scrapes. Times that run are counted up at that moment.
//!
//! These are the only metrics with names of objects in their labels: a few series for each cluster and each pool, and
//! none for anything that a user can make up.

mod clusters;
mod collect;
mod pools;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use serde_json::Value;
use support::shutdown::Drain;

use crate::cache::{self, Cache, Stores};
use crate::context::Context;
use collect::{Sample, Transition, Transitions};

/// Between two counts.
const PERIOD: Duration = Duration::from_secs(30);

/// What was counted last. It is empty in a process that does not lead.
#[derive(Debug, Default)]
pub(crate) struct Census {
    samples: Mutex<BTreeMap<&'static str, Vec<Sample>>>,
    transitions: Transitions,
}

/// Counts until the process is to end, or the term is over.
pub(crate) async fn run(ctx: &Context, census: &Census, mut drain: Drain) {
    let _forget = Forget(census);
    let mut since = Timestamp::now();
    let mut changes = ctx.cache.changes();
    changes.mark_changed();
    loop {
        let now = Timestamp::now();
        // What was counted last holds while nothing changes, and while nobody knows better.
        if changes.has_changed().unwrap_or_default() && is_watched(&ctx.cache) {
            changes.mark_unchanged();
            let span = support::controller::span("census");
            span.in_scope(|| count(&ctx.cache.stores, census, since, now));
            since = now;
        }
        tokio::select! {
            () = tokio::time::sleep(PERIOD) => {}
            () = drain.begun() => return,
        }
    }
}

/// Whether the stores have all clusters and pools.
fn is_watched(cache: &Cache) -> bool {
    let watches = [cache::HOSTED_CLUSTERS, cache::NODE_POOLS];
    watches.iter().all(|watch| cache.index.is_synced(watch))
}

fn count(stores: &Stores, census: &Census, since: Timestamp, now: Timestamp) {
    let mut clusters = clusters::Clusters::default();
    let mut pools = pools::Pools::default();
    let mut transitions = Vec::new();
    for object in stores.clusters.state() {
        let object = &cache::counted(&object);
        clusters.add(object);
        transitions.extend(clusters::Clusters::transitions(object, since, now));
    }
    for object in stores.pools.state() {
        let object = &cache::counted(&object);
        clusters.has_pool(object);
        pools.add(object, clusters.id_of(object));
        transitions.extend(pools::Pools::transitions(object, since, now));
    }
    let mut samples = clusters.samples();
    samples.extend(pools.samples());
    census.transitions.observe(&transitions);
    census.put(samples);
}

/// Who does not lead knows nothing.
struct Forget<'a>(&'a Census);

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.0.put(BTreeMap::new());
    }
}

// === impl Census ===

impl Census {
    /// A census whose metrics are in the registry, which must have no prefix.
    pub(crate) fn new(registry: &mut Registry) -> Arc<Self> {
        let census = Arc::new(Self::default());
        census.transitions.register(registry);
        let latest = payload::Minor::NEWEST.to_string();
        let program = Info::new(vec![
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            ("latestSupportedVersion", latest),
        ]);
        registry.register("hypershift_operator", "The running program", program);
        registry.register_collector(Box::new(Arc::clone(&census)));
        census
    }

    fn put(&self, samples: BTreeMap<&'static str, Vec<Sample>>) {
        *self.samples.lock().unwrap_or_else(PoisonError::into_inner) = samples;
    }
}

/// A field of an object as text; without it, the empty one.
fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// A field of an object as a time.
fn time(object: &Value, pointer: &str) -> Option<Timestamp> {
    text(object, pointer).parse().ok()
}

/// A condition of an object.
fn condition<'a>(object: &'a Value, about: &str) -> Option<&'a Value> {
    let mut conditions = object["status"]["conditions"].as_array()?.iter();
    conditions.find(|condition| condition["type"] == about)
}

/// The conditions among `expected` that are not as they should be, as the metrics name them.
fn failing(object: &Value, expected: &[(&'static str, bool)]) -> Vec<String> {
    let wrong = expected.iter().filter(|(about, good)| {
        let wanted = if *good { "True" } else { "False" };
        condition(object, about).is_some_and(|found| found["status"] != wanted)
    });
    wrong.map(|(about, good)| failure(about, *good)).collect()
}

/// The name of a failure: a condition that should hold does not, or one that should not does.
fn failure(about: &str, good: bool) -> String {
    let not = if good { "not_" } else { "" };
    format!("{not}{about}")
}

/// Which of these conditions became true within a time, and how long after the object was made.
fn became_true(
    object: &Value,
    metric: &'static str,
    conditions: &[&'static str],
    (since, until): (Timestamp, Timestamp),
) -> Vec<Transition> {
    let Some(made) = time(object, "/metadata/creationTimestamp") else {
        return Vec::new();
    };
    conditions
        .iter()
        .filter_map(|&about| {
            let found = condition(object, about).filter(|found| found["status"] == "True")?;
            let at = time(found, "/lastTransitionTime")?;
            (since < at && at <= until).then(|| Transition {
                metric,
                condition: about,
                seconds: at.duration_since(made).as_secs_f64(),
            })
        })
        .collect()
}

/// The platforms, by the name that the API has for each.
const PLATFORMS: [&str; 7] = [
    "AWS", "Agent", "Azure", "IBMCloud", "KubeVirt", "None", "PowerVS",
];

/// The platform of an object, among those that are known: labels are a closed set.
fn platform(object: &Value) -> &'static str {
    let name = text(object, "/spec/platform/type");
    let known = PLATFORMS.into_iter().find(|known| *known == name);
    known.unwrap_or("Other")
}

#[cfg(test)]
mod tests;
