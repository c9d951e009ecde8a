//! Where catalogs run: in the control plane, or in the hosted cluster, and not in the other one.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use testbed::client::Resource;
use testbed::hosted::{Cluster, DEPLOYMENTS, Fixture, Guest, PODS};
use testbed::node::condition;

use super::{CATALOGS, OPERATORS};

const SOURCES: Resource<'_> = Resource::new(OPERATORS, "catalogsources");
/// The catalog that the operator is installed from.
const SOURCE: &str = "redhat-operators";
/// Its Deployment in a control plane.
const DEPLOYMENT: &str = "redhat-operators-catalog";
/// Label of a catalog's pods in a hosted cluster.
const OF_SOURCE: &str = "olm.catalogSource";

/// The catalog runs in the control plane, and the hosted cluster has its address.
pub(crate) async fn is_management(
    fixture: &Fixture,
    cluster: &Cluster<'_>,
    guest: &Guest,
) -> Result<()> {
    fixture
        .stage("the catalog runs in the control plane", async || {
            let path = DEPLOYMENTS.named(&cluster.namespace(), DEPLOYMENT);
            condition(&fixture.testbed.admin.get(&path).await?, "Available")?;
            let spec = source(guest).await?;
            ensure!(spec["address"] == format!("{SOURCE}:50051"), "{spec}");
            ensure!(spec["image"].is_null(), "{spec}");
            let pods = pods(guest).await?;
            ensure!(pods.is_empty(), "the hosted cluster has pods of it");
            Ok(())
        })
        .await
}

/// The catalog runs in the hosted cluster, from an image, and the control plane has none.
pub(crate) async fn is_guest(
    fixture: &Fixture,
    cluster: &Cluster<'_>,
    guest: &Guest,
) -> Result<()> {
    fixture
        .stage("the catalog runs in the hosted cluster", async || {
            let spec = source(guest).await?;
            ensure!(spec["address"].is_null(), "{spec}");
            let image = spec["image"].as_str().context("no image")?;
            let pods = pods(guest).await?;
            let of_image = |pod: &&Value| {
                let containers = pod["spec"]["containers"].as_array();
                let mut containers = containers.into_iter().flatten();
                containers.any(|it| it["image"] == image)
            };
            let pod = pods.iter().find(of_image);
            condition(pod.context("no pod of the image")?, "Ready")?;
            let path = DEPLOYMENTS.named(&cluster.namespace(), DEPLOYMENT);
            let found = fixture.testbed.admin.find(&path).await?;
            ensure!(found.is_none(), "Deployment {path} exists");
            Ok(())
        })
        .await
}

/// The specification of the catalog in the hosted cluster.
async fn source(guest: &Guest) -> Result<Value> {
    let path = SOURCES.named(CATALOGS, SOURCE);
    Ok(guest.client.get(&path).await?["spec"].clone())
}

/// The pods of the catalog in the hosted cluster.
async fn pods(guest: &Guest) -> Result<Vec<Value>> {
    let mut pods = guest.client.list(&PODS.within(CATALOGS)).await?;
    pods.retain(|pod| pod["metadata"]["labels"][OF_SOURCE] == SOURCE);
    Ok(pods)
}
