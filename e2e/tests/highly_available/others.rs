//! The loss of every pod of a control plane, but for those of etcd and of the API server, which have failures of their own.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Result, ensure};
use testbed::wait;

use crate::highly_available::control_plane::{self, Workload};
use crate::highly_available::failures::{MEMBERS, SERVERS};
use crate::highly_available::pods::{self, Pod};
use crate::highly_available::scenario::Scenario;
use crate::rollout::expected;

/// Components whose pods come to an end by themselves: of a Job, and of a `CronJob` that is not due.
const ENDING: [&str; 2] = ["featuregate-generator", "olm-collect-profiles"];
/// Generous: a busy machine is no failure.
const WITHIN: Duration = Duration::from_mins(5);

/// A pod of each workload that has so many replicas.
type Wave = Vec<(String, Pod)>;

/// All of them are deleted, in waves, so that each component keeps what it has replicas for. Each component survives the
/// loss of each of its pods.
pub(crate) async fn are_deleted(scenario: &mut Scenario<'_>) -> Result<()> {
    let waves = wait::until("all pods to be found", WITHIN, async || {
        waves(scenario).await
    })
    .await?;
    let mut lost = BTreeSet::new();
    for mut wave in waves {
        let begun = scenario.begin("a pod of every other component is deleted");
        // Some that were there at the beginning have been replaced since, by what they control themselves.
        let now = pods::all(scenario.admin(), &scenario.namespace).await?;
        wave.retain(|(_, pod)| now.iter().any(|one| one.name == pod.name));
        let (names, wave): (Vec<_>, Vec<_>) = wave.into_iter().unzip();
        lost.extend(names);
        pods::delete(scenario.testbed(), &scenario.namespace, &wave).await?;
        scenario.client.is_available().await?;
        scenario.end(begun, true).await?;
        scenario.cluster().rolled_out().await?;
    }
    is_complete(scenario, &lost).await
}

/// The first pods of all workloads, the second ones, and so on.
async fn waves(scenario: &Scenario<'_>) -> Result<Vec<Wave>> {
    let all = pods::all(scenario.admin(), &scenario.namespace).await?;
    let mut waves: Vec<Wave> = Vec::new();
    for workload in others(scenario).await? {
        let serving = workload.serving(&all);
        let (found, name) = (serving.len(), &workload.name);
        ensure!(found >= workload.replicas, "{found} of {name} serve");
        for (number, pod) in serving.into_iter().enumerate() {
            if number == waves.len() {
                waves.push(Vec::new());
            }
            waves[number].push((name.clone(), pod.clone()));
        }
    }
    Ok(waves)
}

async fn others(scenario: &Scenario<'_>) -> Result<Vec<Workload>> {
    let mut all = control_plane::workloads(scenario.admin(), &scenario.namespace).await?;
    all.retain(|workload| ![MEMBERS, SERVERS].contains(&workload.name.as_str()));
    Ok(all)
}

/// Each workload has lost a pod, and among them are all components.
async fn is_complete(scenario: &Scenario<'_>, lost: &BTreeSet<String>) -> Result<()> {
    let all = others(scenario).await?;
    let all: BTreeSet<_> = all.into_iter().map(|workload| workload.name).collect();
    ensure!(
        *lost == all,
        "{lost:?} have lost a pod, and there are {all:?}"
    );
    let mut components = expected::with_options();
    components.retain(|name| ![MEMBERS, SERVERS].contains(name) && !ENDING.contains(name));
    let spared: Vec<_> = components
        .iter()
        .filter(|name| !lost.contains(**name))
        .collect();
    ensure!(spared.is_empty(), "{spared:?} have lost no pod");
    let text = format!(
        "{} components, {} workloads have lost a pod",
        components.len(),
        lost.len()
    );
    scenario.testbed().progress.note(&text);
    Ok(())
}
