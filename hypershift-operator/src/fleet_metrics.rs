//! Fleet metrics: HostedClusters and NodePools, with the metric names that existing dashboards and alerts use.
//!
//! The leader periodically counts the objects of its watches. `clusters` and `pools` turn objects into samples, without
//! requests; `collect` encodes the samples at each scrape, and computes running durations at that time.
//!
//! These are the only metrics with names of objects in their labels: a few series for each HostedCluster and NodePool. No
//! label has a value that a user can choose freely.

mod clusters;
mod collect;
mod pools;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use serde_json::Value;
use support::controller::DEADLINE;
use support::shutdown::Drain;

use crate::cache::{self, Cache, Stores};
use crate::context::Context;
use collect::{Sample, Transition, Transitions};

/// The interval between two counts.
const PERIOD: Duration = Duration::from_secs(30);

/// The samples of the last count; empty unless this process leads.
#[derive(Debug, Default)]
pub(crate) struct FleetMetrics {
    samples: Mutex<BTreeMap<&'static str, Vec<Sample>>>,
    transitions: Transitions,
}

/// Counts until the shutdown begins or the term of leadership ends.
pub(crate) async fn run(ctx: &Context, fleet_metrics: &FleetMetrics, mut drain: Drain) {
    let _forget = Forget(fleet_metrics);
    let mut since = Timestamp::now();
    let mut changes = ctx.cache.changes();
    changes.mark_changed();
    loop {
        let now = Timestamp::now();
        // The last samples stay while nothing has changed, and while a watch is not in sync.
        if changes.has_changed().unwrap_or_default() && is_watched(&ctx.cache) {
            changes.mark_unchanged();
            let count = async {
                count(&ctx.cache.stores, fleet_metrics, since, now);
                Ok::<_, Infallible>(())
            };
            let counted = ctx.controllers.pass("fleet-metrics", DEADLINE, count);
            // It has no await point, so no deadline aborts it: if it does not end, liveness fails.
            if counted.await.is_ok() {
                since = now;
            }
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

fn count(stores: &Stores, fleet_metrics: &FleetMetrics, since: Timestamp, now: Timestamp) {
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
    fleet_metrics.transitions.observe(&transitions);
    fleet_metrics.put(samples);
}

/// Removes all samples when the term ends: only the leader reports them.
struct Forget<'a>(&'a FleetMetrics);

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.0.put(BTreeMap::new());
    }
}

// === impl FleetMetrics ===

impl FleetMetrics {
    /// Registers the metrics. The registry must have no prefix.
    pub(crate) fn new(registry: &mut Registry) -> Arc<Self> {
        let fleet_metrics = Arc::new(Self::default());
        fleet_metrics.transitions.register(registry);
        let latest = payload::Minor::NEWEST.to_string();
        let program = Info::new(vec![
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            ("latestSupportedVersion", latest),
        ]);
        registry.register("hypershift_operator", "The running program", program);
        registry.register_collector(Box::new(Arc::clone(&fleet_metrics)));
        fleet_metrics
    }

    fn put(&self, samples: BTreeMap<&'static str, Vec<Sample>>) {
        *self.samples.lock().unwrap_or_else(PoisonError::into_inner) = samples;
    }
}

/// A field of an object as text; empty if there is none.
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

/// The conditions that do not have their expected status, as the metrics name them.
fn failing(object: &Value, expected: &[(&'static str, bool)]) -> Vec<String> {
    let wrong = expected.iter().filter(|(about, good)| {
        let desired = if *good { "True" } else { "False" };
        condition(object, about).is_some_and(|found| found["status"] != desired)
    });
    wrong.map(|(about, good)| failure(about, *good)).collect()
}

/// The label of a condition that does not have its expected status.
fn failure(about: &str, good: bool) -> String {
    let not = if good { "not_" } else { "" };
    format!("{not}{about}")
}

/// Which of these conditions became true in an interval, and how long after the creation of the object.
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

/// The platforms, by their names in the API.
const PLATFORMS: [&str; 7] = [
    "AWS", "Agent", "Azure", "IBMCloud", "KubeVirt", "None", "PowerVS",
];

/// The platform of an object, or `Other`: label values are a closed set.
fn platform(object: &Value) -> &'static str {
    let name = text(object, "/spec/platform/type");
    let known = PLATFORMS.into_iter().find(|known| *known == name);
    known.unwrap_or("Other")
}

#[cfg(test)]
mod tests;
