//! How a control plane started: what each pod and each component waited for, in seconds since the cluster was requested.

use std::fmt::Write as _;

use anyhow::{Context, Result};
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;
use testbed::conditions;
use testbed::hosted::{COMPONENTS, Cluster, Fixture, PODS};

/// Shows it.
pub(crate) async fn show(fixture: &Fixture, cluster: &Cluster<'_>) -> Result<()> {
    let admin = &fixture.testbed.admin;
    let seen = cluster.seen().await?;
    let begin = time(&seen["metadata"]["creationTimestamp"]).context("it has no age")?;
    let since = |value: &Value| {
        let passed = time(value).map(|time| time.duration_since(begin).as_secs());
        passed.map_or_else(|| "-".to_owned(), |passed| passed.to_string())
    };
    let mut text = format!(
        "available after {} s\n{:>4} {:>4} {:>4} {:>4}  pod: created, initialised, ready; what it did before\n",
        since(&condition(&seen, "Available")["lastTransitionTime"]),
        "new",
        "init",
        "up",
        "",
    );
    let mut pods = admin.list(&PODS.within(&cluster.namespace())).await?;
    pods.sort_by_key(|pod| time(&condition(pod, "Ready")["lastTransitionTime"]));
    for pod in &pods {
        writeln!(
            text,
            "{:>4} {:>4} {:>4}       {} {}",
            since(&pod["metadata"]["creationTimestamp"]),
            since(&condition(pod, "Initialized")["lastTransitionTime"]),
            since(&condition(pod, "Ready")["lastTransitionTime"]),
            pod["metadata"]["name"].as_str().unwrap_or_default(),
            before(pod, &since),
        )?;
    }
    for component in admin.list(&COMPONENTS.within(&cluster.namespace())).await? {
        writeln!(
            text,
            "{:>4} {:>4}            component {}: available, rolled out",
            since(&condition(&component, "Available")["lastTransitionTime"]),
            since(&condition(&component, "RolloutComplete")["lastTransitionTime"]),
            component["metadata"]["name"].as_str().unwrap_or_default(),
        )?;
    }
    fixture.testbed.progress.note(&text);
    Ok(())
}

/// The containers that run before the others, and when each began and ended.
fn before(pod: &Value, since: &impl Fn(&Value) -> String) -> String {
    let all = pod["status"]["initContainerStatuses"].as_array();
    let each = all.into_iter().flatten().map(|one| {
        let ended = &one["state"]["terminated"];
        let name = one["name"].as_str().unwrap_or_default();
        format!(
            "{name} {}..{}",
            since(&ended["startedAt"]),
            since(&ended["finishedAt"])
        )
    });
    each.collect::<Vec<_>>().join(", ")
}

/// A condition of an object, or nothing.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    conditions::find(object, kind).unwrap_or(&Value::Null)
}

/// A time, as objects have it.
pub(crate) fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}
