//! A cluster on AWS from an account that has nothing but a public hosted zone: its workers join in the network that the
//! command creates, its Services get load balancers there, and the account is as before when it is destroyed.

use anyhow::Result;
use testbed::hosted::{Cluster, Fixture, Platform};

use crate::hosted_cluster::{capi_types, cloud_controller, timeline};

/// Creates it, with nothing but credentials, a base domain, a pull secret and a release; and destroys it while it has a load
/// balancer.
pub(crate) async fn scenario(fixture: &Fixture) -> Result<()> {
    let capi_types = capi_types()?;
    let cloud = &fixture.cloud.client;
    cloud.create_public_zone("testbed").await?;
    let before = cloud.account().await?;
    fixture.install(capi_types, &[]).await?;
    let cluster = Cluster::on(fixture, "empty", capi_types, Platform::AwsFromNothing);
    cluster.create(&["--node-pool-replicas=1"]).await?;
    let guest = cluster.comes_up().await?;
    timeline::show(fixture, &cluster).await?;
    cluster.has_workers(&guest, 1).await?;
    cloud_controller::initializes_nodes(fixture, &guest).await?;
    guest.runs_a_workload(fixture).await?;
    cloud_controller::makes_load_balancers(fixture, &cluster, &guest).await?;
    cluster.destroy().await?;
    cloud.has_only(&before).await
}
