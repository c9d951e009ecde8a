//! Tags of a pool reach instances that run, and replace none.

use anyhow::{Result, ensure};
use api::group;
use serde_json::{Value, json};
use testbed::client::{Patch, Resource};
use testbed::hosted::{Cluster, Fixture};

use crate::hosted_cluster::spot::instance;

const KEY: &str = "cost-center";
const VALUE: &str = "1234";

/// Tags the pool, whose machines run.
pub(crate) async fn reach_running_instances(
    fixture: &Fixture,
    cluster: &Cluster<'_>,
) -> Result<()> {
    let before = (generation(fixture, cluster).await?, uids(cluster).await?);
    ensure!(!before.1.is_empty(), "there is no machine");
    let tags = json!({ "spec": { "platform": { "aws": {
        "resourceTags": [{ "key": KEY, "value": VALUE }],
    } } } });
    let admin = &fixture.testbed.admin;
    admin
        .patch(&cluster.pool_path(), Patch::Merge, &tags)
        .await?;
    fixture
        .stage("the running instances have the pool's tag", async || {
            for machine in cluster.machines().await? {
                let instance = instance(&machine);
                let tags = fixture.cloud.client.tags(&instance).await?;
                let found = tags.get(KEY);
                ensure!(
                    found.is_some_and(|value| value == VALUE),
                    "{instance} has {tags:?}"
                );
            }
            Ok(())
        })
        .await?;
    let after = (generation(fixture, cluster).await?, uids(cluster).await?);
    ensure!(before == after, "{before:?} became {after:?}");
    Ok(())
}

/// The generation of the pool's MachineDeployment: it changes with its specification.
async fn generation(fixture: &Fixture, cluster: &Cluster<'_>) -> Result<Value> {
    let version = format!("{}/v1beta2", group::core(cluster.capi_types()));
    let deployments = Resource::new(&version, "machinedeployments");
    let path = deployments.named(&cluster.namespace(), &cluster.pool());
    let found = fixture.testbed.admin.get(&path).await?;
    Ok(found["metadata"]["generation"].clone())
}

async fn uids(cluster: &Cluster<'_>) -> Result<Vec<Value>> {
    let machines = cluster.machines().await?;
    let uids = machines.iter().map(|it| it["metadata"]["uid"].clone());
    Ok(uids.collect())
}
