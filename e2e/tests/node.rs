//! Testbeds of level node: real kubelets run pods from images of this tree.
//!
//! They need root; without it each says so and does nothing.

use anyhow::Result;
use e2e::images::Image;
use e2e::node::{NodeTestbed, supported};

/// Whether nodes can run here; says why not.
fn can_run() -> bool {
    let outcome = supported();
    if let Err(reason) = &outcome {
        eprintln!("skipped: {reason}");
    }
    outcome.is_ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_run_our_images_on_real_nodes() -> Result<()> {
    if !can_run() {
        return Ok(());
    }
    let testbed = NodeTestbed::builder("node-pods")
        .nodes(2)
        .images(&[Image::CapiProxy])
        .start()
        .await?;
    let outcome = async { anyhow::Ok(()) }.await;
    testbed.finish(outcome)
}
