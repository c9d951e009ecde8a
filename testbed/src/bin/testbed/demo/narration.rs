//! A cluster starts, and each change of a machine is printed.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use anyhow::Result;
use testbed::client::ApiClient;
use testbed::cluster::{Cluster, Shape};
use testbed::fixtures;
use testbed::progress::Progress;

use super::CLUSTER;
use crate::manage::NAMESPACE;

/// How long the machines may take.
const RUNNING_WITHIN: Duration = Duration::from_mins(5);
/// How often the machines are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);
const WORKERS: usize = 3;

/// Creates a cluster in the standard groups, as any client of Cluster API does, and waits for its machines.
pub(super) async fn comes_up(view: &ApiClient, progress: &Progress) -> Result<()> {
    let step = progress.step(
        "a cluster of one control plane machine and three workers is created, in the standard groups",
    );
    let workers = WORKERS.to_string();
    let values = [
        ("NAMESPACE", NAMESPACE),
        ("NAME", CLUSTER),
        ("WORKERS", &workers),
    ];
    view.apply(&fixtures::render("cluster", &values)?).await?;
    let shape = Shape {
        control_plane: 1,
        workers: WORKERS,
    };
    let cluster = Cluster::new(view, NAMESPACE, CLUSTER);
    tokio::select! {
        settled = cluster.settled(shape, RUNNING_WITHIN) => drop(settled?),
        never = narrate(&cluster, progress) => match never {},
    }
    step.done();
    Ok(())
}

/// Prints each change of a machine, until it is dropped.
async fn narrate(cluster: &Cluster, progress: &Progress) -> Infallible {
    let mut known = BTreeMap::new();
    loop {
        // A list that fails is only a line less.
        for machine in cluster.machines().await.unwrap_or_default() {
            let before = known.insert(machine.name.clone(), machine.phase.clone());
            if before.as_ref() != Some(&machine.phase) && !machine.phase.is_empty() {
                progress.note(&format!("  machine {} is {}", machine.name, machine.phase));
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
