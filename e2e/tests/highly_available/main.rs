//! The failures that a highly available control plane is made for, one after another on three nodes in three zones, with
//! a client that reads and writes the hosted API all the time; and what one replica bears.
//!
//! What the client saw is in `docs/failures.md`: the test holds the page to the failures that are replayed and to
//! whether the API responds meanwhile, and `UPDATE_GOLDEN=1` writes the figures again.

mod choice;
mod client;
mod control_plane;
mod failures;
mod journal;
mod others;
mod pods;
mod report;
mod restored;
mod scenario;

use anyhow::Result;
use testbed::hosted;
use testbed::node::{NodeTestbed, Patience};

use crate::highly_available::choice::Choice;

/// How soon lost nodes are given up here. Kubernetes takes 50 seconds and five minutes, and a replay would be long.
const PATIENCE: Patience = Patience {
    silence: 10,
    absence: 5,
};
const NODES: u8 = 3;

/// Check O08.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: cargo xtask soak availability"]
async fn highly_available_control_plane_tolerates_failures() -> Result<()> {
    let choice = Choice::of_environment()?;
    let builder = NodeTestbed::builder("highly-available")
        .nodes(NODES)
        .patience(PATIENCE);
    hosted::play_with(builder, async |fixture| {
        failures::replay(fixture, &choice).await
    })
    .await
}
