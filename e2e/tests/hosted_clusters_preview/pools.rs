//! Pools of a platform: the machines that they have, and what is refused while they go on.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testbed::client::{ApiClient, Resource};

use crate::hosted_clusters_api::cluster::Cluster;
use crate::hosted_clusters_api::expect::{fields, is};
use crate::hosted_clusters_api::further_pool::{FurtherPool, user_data};
use crate::hosted_clusters_api::refusals::KEPT;
use crate::hosted_clusters_preview::fixture::{Fixture, POOL_VERSION};

/// The group of the providers' kinds.
const INFRASTRUCTURE: &str = "infrastructure.cluster.hypershift.openshift.io";
/// An architecture that the machines of neither platform have.
const OTHER_ARCHITECTURE: &str = "ppc64le";

/// The pool that the cluster is created with.
pub(crate) fn pool<'a>(cluster: &'a Cluster, admin: &'a ApiClient) -> FurtherPool<'a> {
    FurtherPool::new(cluster, admin, "workers")
}

/// Waits until the MachineDeployment of a pool has templates of this kind and machines in this zone; gives the name of the
/// template.
pub(crate) async fn template(pool: &FurtherPool<'_>, kind: &str, zone: &str) -> Result<String> {
    let path = pool.deployment_path();
    let reference = "/spec/template/spec/infrastructureRef/kind";
    let deployment = is(pool.admin, &path, reference, &json!(kind)).await?;
    let expected = json!({
        "failureDomain": zone,
        "infrastructureRef": { "apiGroup": INFRASTRUCTURE, "kind": kind },
        "version": POOL_VERSION,
    });
    fields(
        "machine",
        &deployment["spec"]["template"]["spec"],
        &expected,
    )?;
    let prefix = format!("user-data-{}-", pool.name);
    let user_data = user_data(&deployment);
    ensure!(user_data.starts_with(&prefix), "it has {user_data}");
    Ok(template_of(&deployment).to_owned())
}

/// Gives the pool a release without boot images: a condition has the problem, the number of machines follows the pool, and
/// nothing else does until the correction. Then its machines have this part in their template.
pub(crate) async fn goes_on_without_image(
    pool: &FurtherPool<'_>,
    bare: &str,
    (problem, correction): (&str, &Value),
    (templates, pointer, expected): (&Resource<'_>, &str, &Value),
) -> Result<()> {
    let before = pool.admin.get(&pool.deployment_path()).await?;
    let refused = json!({ "release": { "image": bare }, "replicas": 2 });
    pool.change(&refused).await?;
    let state = ("False", "InvalidImage");
    pool.reports("ValidPlatformImage", state, &[problem, KEPT])
        .await?;
    let held = pool
        .until("the number of machines to follow", |it| {
            let found = &it["spec"]["replicas"];
            ensure!(*found == 2, "it is {found}");
            Ok(())
        })
        .await?;
    let (old, new) = (&before["spec"]["template"], &held["spec"]["template"]);
    ensure!(old == new, "{old} became {new}");
    pool.change(correction).await?;
    pool.reports("ValidPlatformImage", ("True", "AsExpected"), &[])
        .await?;
    let corrected = pool
        .until("machines with another image", |it| {
            ensure!(template_of(it) != template_of(&before), "they are the same");
            Ok(())
        })
        .await?;
    let path = templates.named(&pool.cluster.namespace(), template_of(&corrected));
    is(pool.admin, &path, pointer, expected).await.map(drop)
}

/// A further pool with another architecture is refused, and can be deleted.
pub(crate) async fn other_architectures_are_refused(
    cluster: &Cluster,
    admin: &ApiClient,
    fixture: &Fixture,
    (machines, supported): (&Value, &str),
) -> Result<()> {
    let pool = FurtherPool::new(cluster, admin, "power");
    let mut desired = pool.desired(&fixture.older)?;
    desired["spec"]["platform"] = machines.clone();
    desired["spec"]["arch"] = json!(OTHER_ARCHITECTURE);
    admin.apply(&[desired]).await?;
    let platform = machines["type"].as_str().unwrap_or_default();
    let problem = format!(
        "spec.arch is {OTHER_ARCHITECTURE}, and machines of platform {platform} are {supported}: "
    );
    let state = ("False", "InvalidArchPlatform");
    pool.reports("ValidArchPlatform", state, &[&problem])
        .await?;
    let made = admin.find(&pool.deployment_path()).await?;
    ensure!(made.is_none(), "it has machines");
    pool.is_deleted().await
}

/// The name of the template of a MachineDeployment's machines.
fn template_of(deployment: &Value) -> &str {
    let name = &deployment["spec"]["template"]["spec"]["infrastructureRef"]["name"];
    name.as_str().unwrap_or_default()
}
