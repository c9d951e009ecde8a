//! Machines of the fake cloud, without any operator: an instance becomes a machine, its user data make a node of it, and
//! its end takes the node's programs away.
//!
//! They need root; without it each says so and does nothing.

mod provider;
mod user_data;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use testbed::client::Resource;
use testbed::cloud::FakeCloud;
use testbed::fixtures;
use testbed::node::{NodeTestbed, condition, supported};
use testbed::wait;

const PODS: Resource<'_> = Resource::new("v1", "pods");
/// Generous: a busy machine is no failure.
const WITHIN: Duration = Duration::from_mins(3);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_becomes_a_node_by_its_user_data() -> Result<()> {
    if let Err(reason) = supported() {
        eprintln!("skipped: {reason}");
        return Ok(());
    }
    let testbed = NodeTestbed::builder("guest").start().await?;
    let outcome = scenario(&testbed).await;
    testbed.finish(outcome)
}

async fn scenario(testbed: &NodeTestbed) -> Result<()> {
    let cloud = FakeCloud::start(testbed).await?;
    let outcome = joins(testbed, &cloud).await;
    if outcome.is_err() {
        testbed.progress.note(&cloud.said());
    }
    outcome
}

async fn joins(testbed: &NodeTestbed, cloud: &FakeCloud) -> Result<()> {
    let step = testbed.progress.step("an instance becomes a node");
    let token = fixtures::render("guest/bootstrap", &[])?;
    testbed.admin.apply(&token).await?;
    let document = user_data::document(testbed)?;
    let instance = cloud
        .client
        .run_instance(&cloud.network, document.to_string().as_bytes())
        .await?;
    let node = wait::until("the node to be ready", WITHIN, async || {
        let node = node_of(testbed, &instance).await?;
        condition(&node, "Ready")?;
        Ok(node)
    })
    .await?;
    is_as_the_cloud_says(&node, cloud, &instance).await?;
    step.done();

    let step = testbed.progress.step("a pod runs on it");
    let name = node["metadata"]["name"].as_str().context("no name")?;
    let image = testbed.resolve_image();
    let values = [("NODE", name), ("IMAGE", image.as_str())];
    let pod = fixtures::render("guest/pod", &values)?;
    testbed.admin.apply(&pod).await?;
    wait::until("the pod's end", WITHIN, async || {
        let pod = testbed
            .admin
            .get(&PODS.named("default", "on-guest"))
            .await?;
        ensure!(pod["status"]["phase"] == "Succeeded", "{}", pod["status"]);
        Ok(())
    })
    .await?;
    step.done();

    let step = testbed
        .progress
        .step("the instance ends, and its machine with it");
    cloud.client.terminate(&instance).await?;
    wait::until("the machine's end", WITHIN, async || {
        ensure!(cloud.machines().is_empty(), "it runs");
        Ok(())
    })
    .await?;
    wait::until("the node not to be ready", WITHIN, async || {
        let node = node_of(testbed, &instance).await?;
        ensure!(condition(&node, "Ready").is_err(), "it is ready");
        Ok(())
    })
    .await?;
    step.done();
    Ok(())
}

async fn node_of(testbed: &NodeTestbed, instance: &str) -> Result<Value> {
    let nodes = testbed.admin.list("/api/v1/nodes").await?;
    let found = nodes.into_iter().find(|node| {
        node["spec"]["providerID"]
            .as_str()
            .is_some_and(|id| id.ends_with(instance))
    });
    found.context("no node has the instance's provider id")
}

async fn is_as_the_cloud_says(node: &Value, cloud: &FakeCloud, instance: &str) -> Result<()> {
    let instances = cloud.client.instances().await?;
    let found = instances.iter().find(|one| one.id == instance);
    let found = found.context("the instance has gone")?;
    let id = format!("aws:///{}/{instance}", found.zone);
    ensure!(
        node["spec"]["providerID"] == id.as_str(),
        "{}",
        node["spec"]
    );
    ensure!(node["metadata"]["name"] == found.name.as_str());
    let addresses = node["status"]["addresses"].as_array().into_iter().flatten();
    ensure!(
        addresses
            .clone()
            .any(|one| one["address"] == found.address.as_str()),
        "{}",
        node["status"]["addresses"]
    );
    Ok(())
}
