//! Testbeds of level node: real kubelets run pods from images of this tree, and nothing is left behind.
//!
//! They need root; without it each says so and does nothing.

mod add_ons;
mod authority;
mod leftovers;
mod pods;
mod processes;
mod sidecar;

use anyhow::{Result, ensure};
use testbed::node::{NodeTestbed, supported};
use testbed::raw::RawClient;

/// Whether nodes can run here; says why not.
fn can_run() -> bool {
    let outcome = supported();
    if let Err(reason) = &outcome {
        eprintln!("skipped: {reason}");
    }
    outcome.is_ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_testbeds_run_side_by_side() -> Result<()> {
    if !can_run() {
        return Ok(());
    }
    let (one, two) = tokio::try_join!(
        NodeTestbed::builder("node-beside-one").start(),
        NodeTestbed::builder("node-beside-two").start(),
    )?;
    let outcome = apart(&one, &two).await;
    one.finish(outcome)?;
    // The end of the first one has taken nothing from the second.
    let outcome = served(&two).await;
    two.finish(outcome)
}

async fn apart(one: &NodeTestbed, two: &NodeTestbed) -> Result<()> {
    let object = serde_json::json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "namespace": "default", "name": "only-in-one" },
    });
    one.admin.apply(std::slice::from_ref(&object)).await?;
    let path = one.admin.path_of(&object).await?;
    ensure!(one.admin.find(&path).await?.is_some());
    ensure!(two.admin.find(&path).await?.is_none(), "both are one");
    served(one).await?;
    served(two).await
}

/// The API server responds under its Service's address, from outside of the namespaces: kube-proxy leads there.
async fn served(testbed: &NodeTestbed) -> Result<()> {
    let service = testbed.namespaces().subnets().api_service();
    let authority = testbed.control_plane.endpoint().authority;
    let client = RawClient::new(&format!("https://{service}"), Some(&authority))?;
    let response = client.get("/readyz").await?;
    ensure!(response.status.is_success(), "{}", response.status);
    Ok(())
}
