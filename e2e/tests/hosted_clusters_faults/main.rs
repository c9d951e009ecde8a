//! Faults of a hosted cluster's operators, on a real API server without nodes: they are killed at each of their writes, they are
//! replaced by others, their objects are taken from them, and clusters are deleted before they are whole.
//!
//! Both operators run as processes with the rights of an installation; the control-plane-operator as the Deployment says
//! that hypershift-operator has made. `cargo xtask soak faults` runs all kills, or a seeded sample of them.

mod canonical;
mod choice;
pub(crate) mod components;
mod deaths;
mod drift;
mod fault_points;
pub(crate) mod fixture;
pub(crate) mod life;
mod platforms;
mod removal;
pub(crate) mod replacement;
mod replicas;
mod stages;

use anyhow::Result;
use testbed::progress::Progress;
use testbed::testbed::Testbed;

/// From a lifecycle without faults to one with kills at every write (O03, O05, O06, O07).
/// Checks O03, O05, O06 and O07.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: cargo xtask soak faults --one-in 24"]
async fn hosted_clusters_survive_operator_failures() -> Result<()> {
    let name = choice::Choice::of_environment()?.testbed();
    let mut testbed = Testbed::start(&name, Progress::detect()).await?;
    let outcome = stages::run(&mut testbed).await;
    testbed.finish(outcome)
}
