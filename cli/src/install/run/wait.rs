//! Waits for what was applied, and says why it does not come.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::Value;

use super::{listed, said};
use crate::install::cluster::Cluster;
use crate::install::difference::Outcome;
use crate::install::display::Display;
use crate::install::kind::{Kind, text};
use crate::install::object::{Id, Object};
use crate::install::rollout;
use crate::install::workload::NAME_LABEL;

/// Between two looks.
const INTERVAL: Duration = Duration::from_millis(500);

/// Until the API server serves every CRD.
pub(super) async fn until_served(
    cluster: &Cluster,
    steps: &[(Object, Outcome)],
    timeout: Duration,
    display: &Display,
) -> anyhow::Result<()> {
    let paths: Vec<String> = of_kind(steps, Kind::Crd)
        .map(|object| object.id.path())
        .collect();
    let deadline = Instant::now() + timeout;
    let mut step = display.step("waiting until the CRDs are served");
    loop {
        let found = cluster
            .find_all(paths.clone())
            .await
            .context("cannot read the CRDs")?;
        let pending: Vec<String> = found.iter().flatten().filter_map(not_served).collect();
        if pending.is_empty() {
            step.done("served");
            return Ok(());
        }
        if Instant::now() >= deadline {
            bail!(
                "{} CRDs are not served after {} s; the first: {}",
                pending.len(),
                timeout.as_secs(),
                pending[0]
            );
        }
        step.update(&format!("{} to go", pending.len()));
        tokio::time::sleep(INTERVAL).await;
    }
}

fn not_served(crd: &Value) -> Option<String> {
    let name = text(crd, "/metadata/name");
    let conditions = crd["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    if conditions
        .clone()
        .any(|one| one["type"] == "Established" && one["status"] == "True")
    {
        return None;
    }
    let refused = conditions.find(|one| one["type"] == "NamesAccepted" && one["status"] == "False");
    Some(match refused {
        Some(condition) => format!("{name}: {}", text(condition, "/message")),
        None => format!("{name}: not established"),
    })
}

/// Whether a Deployment is rolled out and available.
pub(super) async fn is_available(cluster: &Cluster, id: &Id) -> anyhow::Result<bool> {
    let live = cluster.find(&id.path()).await;
    let live = live
        .map_err(|error| anyhow::anyhow!("{}", said(&error)))
        .with_context(|| format!("cannot read {id}"))?;
    Ok(live.is_some_and(|live| rollout::missing(&live).is_none()))
}

/// Until every Deployment is rolled out and available.
pub(super) async fn until_available(
    cluster: &Cluster,
    steps: &[(Object, Outcome)],
    timeout: Duration,
    display: &Display,
) -> anyhow::Result<()> {
    let deadline = Instant::now() + timeout;
    for object in of_kind(steps, Kind::Deployment) {
        let mut step = display.step(&format!("waiting for {}", object.id));
        loop {
            let live = cluster.find(&object.id.path()).await;
            let live = live
                .map_err(|error| anyhow::anyhow!("{}", said(&error)))
                .with_context(|| format!("cannot read {}", object.id))?;
            // The new operator removes operator-legacy when it is not needed.
            let Some(live) = live else {
                step.done("removed again: no longer needed");
                break;
            };
            let Some(missing) = rollout::missing(&live) else {
                step.done("available");
                break;
            };
            if Instant::now() >= deadline {
                let why = explain(cluster, &live).await;
                bail!(
                    "{} is not available after {} s: {missing}{why}",
                    object.id,
                    timeout.as_secs()
                );
            }
            step.update(&missing);
            tokio::time::sleep(INTERVAL).await;
        }
    }
    Ok(())
}

/// Why, as far as the user may see it.
async fn explain(cluster: &Cluster, deployment: &Value) -> String {
    let namespace = text(deployment, "/metadata/namespace");
    let name = text(deployment, "/metadata/name");
    let base = format!("/api/v1/namespaces/{namespace}");
    let pods = cluster
        .list(
            &format!("{base}/pods"),
            &format!("&labelSelector={NAME_LABEL}%3D{name}"),
        )
        .await;
    let events = cluster.list(&format!("{base}/events"), "").await;
    match pods {
        Ok(pods) => listed(rollout::explain(
            deployment,
            &pods,
            &events.unwrap_or_default(),
        )),
        Err(error) => format!("\n  - its pods cannot be listed: {}", said(&error)),
    }
}

fn of_kind(steps: &[(Object, Outcome)], kind: Kind) -> impl Iterator<Item = &Object> {
    steps
        .iter()
        .map(|(object, _)| object)
        .filter(move |object| object.id.kind == kind)
}
