//! What the operator makes of a node pool.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::client::{ApiClient, Patch, Resource};
use testbed::conditions::untrue;
use testbed::operator::SOON;
use testbed::wait;

use crate::hosted_clusters_api::cluster::{Cluster, NODE_POOLS, SECRETS};
use crate::hosted_clusters_api::fixture::{Fixture, NAMESPACE};

/// A pool is made, scaled, and given another release and another machine.
pub(crate) async fn run_lifecycle(
    cluster: &Cluster,
    admin: &ApiClient,
    fixture: &Fixture,
) -> Result<()> {
    let first = made(cluster, admin, 1, "").await?;
    change(cluster, admin, json!({ "replicas": 3 })).await?;
    let scaled = made(cluster, admin, 3, "").await?;
    ensure!(
        template(&scaled) == template(&first) && user_data(&scaled) == user_data(&first),
        "machines are replaced by scaling"
    );
    let release = json!({ "release": { "image": fixture.release } });
    change(cluster, admin, release).await?;
    let upgraded = made(cluster, admin, 3, user_data(&first)).await?;
    ensure!(
        upgraded["spec"]["template"]["spec"]["version"] == "4.22.0",
        "{}",
        upgraded["spec"]["template"]["spec"]["version"]
    );
    let larger = json!({ "platform": { "aws": { "instanceType": "m5.xlarge" } } });
    change(cluster, admin, larger).await?;
    let old = template(&upgraded).to_owned();
    until(cluster, admin, "another template", |deployment| {
        ensure!(template(deployment) != old, "it is {old}");
        Ok(())
    })
    .await?;
    Ok(())
}

async fn change(cluster: &Cluster, admin: &ApiClient, spec: Value) -> Result<()> {
    let path = NODE_POOLS.named(NAMESPACE, &cluster.pool());
    let desired = json!({ "spec": spec });
    admin.patch(&path, Patch::Merge, &desired).await?;
    Ok(())
}

/// The MachineDeployment with so many replicas and other user data than `not`, once all that it names is there.
async fn made(cluster: &Cluster, admin: &ApiClient, replicas: u32, not: &str) -> Result<Value> {
    let what = format!("a MachineDeployment with {replicas} replicas");
    let deployment = until(cluster, admin, &what, |deployment| {
        ensure!(
            deployment["spec"]["replicas"] == replicas && user_data(deployment) != not,
            "{}",
            deployment["spec"]
        );
        Ok(())
    })
    .await?;
    let namespace = cluster.namespace();
    let user_data = user_data(&deployment);
    let token = user_data.replacen("user-data-", "token-", 1);
    let templates = Resource::new(cluster.version(true), "awsmachinetemplates");
    for path in [
        SECRETS.named(&namespace, user_data),
        SECRETS.named(&namespace, &token),
        templates.named(&namespace, template(&deployment)),
    ] {
        admin.get(&path).await?;
    }
    Ok(deployment)
}

async fn until(
    cluster: &Cluster,
    admin: &ApiClient,
    what: &str,
    is_so: impl Fn(&Value) -> Result<()>,
) -> Result<Value> {
    let deployments = Resource::new(cluster.version(false), "machinedeployments");
    let path = deployments.named(&cluster.namespace(), &cluster.pool());
    wait::until(what, SOON, async || {
        let pool = admin
            .get(&NODE_POOLS.named(NAMESPACE, &cluster.pool()))
            .await?;
        let reported = || format!("the pool says {}", untrue(&pool));
        let deployment = admin.find(&path).await?.with_context(reported)?;
        is_so(&deployment).with_context(reported)?;
        Ok(deployment)
    })
    .await
}

fn user_data(deployment: &Value) -> &str {
    text(deployment, "/spec/template/spec/bootstrap/dataSecretName")
}

fn template(deployment: &Value) -> &str {
    text(deployment, "/spec/template/spec/infrastructureRef/name")
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    let text = object.pointer(pointer).and_then(Value::as_str);
    text.unwrap_or_default()
}
