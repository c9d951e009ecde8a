//! What there is of hosted clusters and node pools, counted for metrics under the names that dashboards and alerts know.
//!
//! The leader lists them now and then; `clusters` and `pools` make samples of what they find, purely, and
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
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use support::error::chain;
use support::shutdown::Drain;

use crate::context::Context;
use crate::error::Error;
use crate::hosted_cluster::resource;
use collect::{Sample, Transition, Transitions};

/// Between two counts.
const PERIOD: Duration = Duration::from_secs(30);
/// Objects in one page of a list: each takes a hundred KiB as long as it is looked at.
const PAGE: u32 = 25;

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
    loop {
        let now = Timestamp::now();
        match count(ctx, census, since, now).await {
            Ok(()) => since = now,
            Err(error) => {
                let problem = chain(&error);
                tracing::debug!(problem, "Hosted clusters cannot be counted");
            }
        }
        tokio::select! {
            () = tokio::time::sleep(PERIOD) => {}
            () = drain.begun() => return,
        }
    }
}

async fn count(
    ctx: &Context,
    census: &Census,
    since: Timestamp,
    now: Timestamp,
) -> Result<(), Error> {
    let mut clusters = clusters::Clusters::default();
    let mut pools = pools::Pools::default();
    let mut transitions = Vec::new();
    each(ctx, &resource(), "HostedClusters", |object| {
        clusters.add(object);
        transitions.extend(clusters::Clusters::transitions(object, since, now));
    })
    .await?;
    each(ctx, &node_pools(), "NodePools", |object| {
        clusters.has_pool(object);
        pools.add(object, clusters.id_of(object));
        transitions.extend(pools::Pools::transitions(object, since, now));
    })
    .await?;
    let mut samples = clusters.samples();
    samples.extend(pools.samples());
    census.transitions.observe(&transitions);
    census.put(samples);
    Ok(())
}

/// Does something for each object of a kind, and keeps none of them: they are large.
async fn each(
    ctx: &Context,
    kind: &ApiResource,
    what: &'static str,
    mut act: impl FnMut(&Value),
) -> Result<(), Error> {
    let api: Api<DynamicObject> = Api::all_with(ctx.client.clone(), kind);
    let mut params = ListParams::default().limit(PAGE);
    loop {
        let list = api.list(&params).await.map_err(Error::list(what))?;
        for object in list.items {
            act(&json!(object));
        }
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(()),
        }
    }
}

fn node_pools() -> ApiResource {
    ApiResource {
        kind: "NodePool".to_owned(),
        plural: "nodepools".to_owned(),
        ..resource()
    }
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
