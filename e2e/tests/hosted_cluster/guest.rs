//! The hosted cluster itself, as its user sees it.

use std::time::Duration;

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use e2e::client::{ApiClient, Resource};
use e2e::fixtures;
use e2e::node::{NodeTestbed, condition};
use e2e::wait;

use crate::ground::{NAME, NAMESPACE};
use crate::stages::{SECRETS, cluster};

const DEPLOYMENTS: Resource<'_> = Resource::new("apps/v1", "deployments");
const WITHIN: Duration = Duration::from_mins(3);

/// A client by the kubeconfig that the HostedCluster names, which has been answered.
pub(crate) async fn client(admin: &ApiClient) -> Result<ApiClient> {
    let cluster = cluster(admin).await?;
    let name = cluster["status"]["kubeconfig"]["name"]
        .as_str()
        .with_context(|| format!("the status of {NAME} names no kubeconfig"))?;
    let secret = admin.get(&SECRETS.named(NAMESPACE, name)).await?;
    let encoded = secret["data"]["kubeconfig"]
        .as_str()
        .with_context(|| format!("the Secret {name} has no kubeconfig"))?;
    let text = String::from_utf8(STANDARD.decode(encoded)?)?;
    let client = ApiClient::from_text(&text).await?;
    client.text("/version").await?;
    client.list("/api/v1/namespaces").await?;
    Ok(client)
}

/// A Deployment that is created in the hosted cluster runs on a worker.
pub(crate) async fn runs_a_workload(testbed: &NodeTestbed, hosted: &ApiClient) -> Result<()> {
    let step = testbed.progress.step("a Deployment of the user's runs");
    let image = testbed.pause_image();
    let objects = fixtures::render("hosted_cluster/workload", &[("IMAGE", &image)])?;
    hosted.apply(&objects).await?;
    let path = DEPLOYMENTS.named("default", "workload");
    wait::until("the Deployment", WITHIN, async || {
        condition(&hosted.get(&path).await?, "Available")
    })
    .await?;
    step.done();
    Ok(())
}
