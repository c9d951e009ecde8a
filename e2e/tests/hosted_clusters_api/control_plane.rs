//! What becomes of the objects and the status of a control plane.

use anyhow::{Context, Result, ensure};
use testbed::client::ApiClient;
use testbed::operator::SOON;
use testbed::{simulation, wait};

use crate::hosted_clusters_api::cluster::SECRETS;
use crate::hosted_clusters_api::fixture::NAMESPACE;

/// Makes a control plane look available, once it is there.
pub(crate) async fn comes_up(admin: &ApiClient, name: &str) -> Result<()> {
    simulation::control_plane_comes_up(admin, NAMESPACE, name).await
}

/// The administrator finds the kubeconfig beside the HostedCluster.
pub(crate) async fn is_handed_over(admin: &ApiClient, name: &str) -> Result<()> {
    let namespace = format!("{NAMESPACE}-{name}");
    let copy = SECRETS.named(NAMESPACE, &format!("{name}-admin-kubeconfig"));
    wait::until("the copy of the kubeconfig", SOON, async || {
        let original = admin
            .get(&SECRETS.named(&namespace, "admin-kubeconfig"))
            .await?;
        let copy = admin.find(&copy).await?.context("there is none")?;
        ensure!(copy["data"] == original["data"], "it is another one");
        Ok(())
    })
    .await
}
