//! A hosted cluster for real: from an empty management cluster to workers that joined by their pool's user data, and back.
//!
//! It is a scenario in stages. Each says what it waits for and, when that does not come, what is missing; then the state
//! of everything that has a part in it is shown. With the variable `HYPERSHIFT_TESTBED_HOLD` set, a testbed whose scenario
//! failed stays until it is interrupted, to be looked at with kubectl.
//!
//! It needs root; without it, it says so and does nothing.

mod diagnosis;
mod ground;
mod guest;
mod stages;

use anyhow::Result;
use e2e::images::Image;
use e2e::node::{NodeTestbed, supported};

use ground::Ground;

/// Keeps a testbed whose scenario failed.
const HOLD: &str = "HYPERSHIFT_TESTBED_HOLD";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hosted_cluster_comes_works_and_goes() -> Result<()> {
    if let Err(reason) = supported() {
        eprintln!("skipped: {reason}");
        return Ok(());
    }
    let testbed = NodeTestbed::builder("hosted-cluster")
        .images(&[Image::HypershiftOperator, Image::CapiProxy])
        .start()
        .await?;
    let outcome = scenario(&testbed).await;
    testbed.finish(outcome)
}

async fn scenario(testbed: &NodeTestbed) -> Result<()> {
    let ground = Ground::prepare(testbed).await?;
    let outcome = stages::run(testbed, &ground).await;
    if let Err(error) = &outcome {
        diagnosis::show(testbed, &ground).await;
        if is_held() {
            // With its cloud, which ends with the ground.
            hold(testbed, error).await?;
        }
    }
    outcome
}

/// Whether somebody wants to look.
fn is_held() -> bool {
    std::env::var_os(HOLD).is_some()
}

async fn hold(testbed: &NodeTestbed, error: &anyhow::Error) -> Result<()> {
    let kubeconfig = testbed.kubeconfig().display();
    let text = format!("failed: {error:#}\nheld: kubectl --kubeconfig {kubeconfig} get pods -A");
    testbed.progress.note(&text);
    Ok(tokio::signal::ctrl_c().await?)
}
