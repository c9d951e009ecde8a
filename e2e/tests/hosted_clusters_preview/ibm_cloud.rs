//! Clusters on IBM Cloud: machines are made by its own service, so that there are no controllers of Cluster API and no
//! credentials. With some ways to build infrastructure there is no object of Cluster API at all.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::client::{ApiClient, Resource};
use testbed::operator::SOON;
use testbed::wait;

use crate::hosted_clusters_api::cluster::{Cluster, DEPLOYMENTS};
use crate::hosted_clusters_api::control_plane;
use crate::hosted_clusters_api::expect::{is_copied, is_managed, is_true};
use crate::hosted_clusters_api::fixture::NAMESPACE;
use crate::hosted_clusters_api::other_platforms::{CLUSTERS, destroyed, user_data};
use crate::hosted_clusters_api::refusals::{machine_config, put};
use crate::hosted_clusters_preview::fixture::{Fixture, POOL_VERSION};
use crate::hosted_clusters_preview::pools;

const IBM_CLUSTERS: Resource<'_> = Resource::new(
    "infrastructure.cluster.hypershift.openshift.io/v1beta2",
    "ibmvpcclusters",
);
/// The Secret with the key for the service that encrypts Secrets.
const ENCRYPTION: &str = "ibm-encryption";
/// The ConfigMap that the pool refers to.
const CONFIG: &str = "ibm-config";

/// A cluster with an object of Cluster API, and one without.
pub(crate) async fn live(admin: &ApiClient, fixture: &Fixture) -> Result<()> {
    with_object(admin, fixture)
        .await
        .context("the one with an IBMVPCCluster")?;
    without_object(admin, fixture)
        .await
        .context("the one without")
}

async fn with_object(admin: &ApiClient, fixture: &Fixture) -> Result<()> {
    let cluster = &Cluster::private("ibm");
    let mut objects = desired(cluster, fixture, &json!({}))?;
    for object in &mut objects {
        if object["kind"] == "HostedCluster" {
            object["spec"]["secretEncryption"] = encryption();
        }
    }
    admin.apply(&objects).await?;
    is_refused_until_corrected(cluster, admin)
        .await
        .context("what is refused")?;
    control_plane::comes_up(admin, cluster.name).await?;
    cluster_is_made(cluster, admin)
        .await
        .context("the cluster")?;
    nothing_makes_machines(cluster, admin).await?;
    pool_is_refused(cluster, admin).await.context("its pool")?;
    destroyed(admin, cluster.name).await.context("its deletion")
}

async fn without_object(admin: &ApiClient, fixture: &Fixture) -> Result<()> {
    let cluster = &Cluster::private("upi");
    let objects = desired(cluster, fixture, &json!({ "providerType": "UPI" }))?;
    admin.apply(&objects).await?;
    control_plane::comes_up(admin, cluster.name).await?;
    user_data(admin, cluster.name, None).await?;
    let namespace = cluster.namespace();
    for path in [CLUSTERS, IBM_CLUSTERS].map(|kind| kind.within(&namespace)) {
        ensure!(admin.list(&path).await?.is_empty(), "{path} is not empty");
    }
    nothing_makes_machines(cluster, admin).await?;
    cluster.has_platform(admin).await?;
    destroyed(admin, cluster.name).await.context("its deletion")
}

/// The objects of a cluster with these settings of IBM Cloud.
fn desired(cluster: &Cluster, fixture: &Fixture, ibm_cloud: &Value) -> Result<Vec<Value>> {
    let platform = json!({ "type": "IBMCloud", "ibmcloud": ibm_cloud });
    let machines = json!({ "type": "IBMCloud" });
    let objects = cluster.desired_on(&fixture.release, &platform, &machines)?;
    Ok(fixture.with_older_pools(objects))
}

/// Encryption of Secrets with a key of IBM Cloud, for which the user brings an API key.
fn encryption() -> Value {
    let key = json!({
        "crkID": "root",
        "instanceID": "instance",
        "correlationID": "correlation",
        "url": "https://kms.example.com",
        "keyVersion": 1,
    });
    let unmanaged = json!({ "credentials": { "name": ENCRYPTION } });
    json!({ "type": "kms", "kms": { "provider": "IBMCloud", "ibmcloud": {
        "region": "us-south",
        "auth": { "type": "Unmanaged", "unmanaged": unmanaged },
        "keyList": [key],
    } } })
}

/// Nothing is made before the Secret has the key, and the condition reports what is missing.
async fn is_refused_until_corrected(cluster: &Cluster, admin: &ApiClient) -> Result<()> {
    let field = "spec.secretEncryption.kms.ibmcloud.auth.unmanaged.credentials";
    let reference = format!("{field} names Secret {NAMESPACE}/{ENCRYPTION}, which");
    let configuration = "ValidConfiguration";
    let problem = format!("{reference} does not exist: create it");
    cluster.is_refused(admin, configuration, &problem).await?;
    admin.apply(&[secret("apikey")]).await?;
    cluster.is_looked_at(admin, "with another key").await?;
    let problem = format!("{reference} lacks iam_apikey: add it");
    cluster.is_refused(admin, configuration, &problem).await?;
    admin.apply(&[secret("iam_apikey")]).await?;
    cluster.is_looked_at(admin, "with the key").await?;
    cluster.reports(admin, configuration, "True", "").await
}

fn secret(key: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "namespace": NAMESPACE, "name": ENCRYPTION },
        "data": { key: "YSBrZXk=" },
    })
}

async fn cluster_is_made(cluster: &Cluster, admin: &ApiClient) -> Result<()> {
    // The kind requires the two empty fields.
    let spec = json!({
        "controlPlaneEndpoint": { "host": "api.example.com", "port": 6443 },
        "region": "",
        "resourceGroup": "",
    });
    is_managed(admin, cluster, (IBM_CLUSTERS, "IBMVPCCluster"), &spec).await?;
    is_copied(admin, &cluster.namespace(), ENCRYPTION).await?;
    is_true(admin, &cluster.path(), "PlatformCredentialsFound").await?;
    cluster.has_platform(admin).await
}

/// There are no controllers of Cluster API, and nothing for them to make machines of.
async fn nothing_makes_machines(cluster: &Cluster, admin: &ApiClient) -> Result<()> {
    let namespace = cluster.namespace();
    for name in ["cluster-api", "capi-provider"] {
        let path = DEPLOYMENTS.named(&namespace, name);
        ensure!(admin.find(&path).await?.is_none(), "{path} is there");
    }
    for plural in ["machinedeployments", "machinesets"] {
        let path = Resource::new(cluster.version(false), plural).within(&namespace);
        ensure!(admin.list(&path).await?.is_empty(), "{path} is not empty");
    }
    Ok(())
}

/// Users start the machines with the user data. It stays while the configuration is refused, and changes with the correction.
async fn pool_is_refused(cluster: &Cluster, admin: &ApiClient) -> Result<()> {
    let pool = pools::pool(cluster, admin);
    let before = user_data(admin, cluster.name, None).await?;
    let by_others = "Machines of this platform are created by another controller";
    pool.reports("Ready", ("True", "AsExpected"), &[by_others])
        .await?;
    wait::until("the version of the pool", SOON, async || {
        let version = admin.get(&pool.path()).await?["status"]["version"].take();
        ensure!(version == POOL_VERSION, "it is {version}");
        Ok(())
    })
    .await?;
    let other = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {}\n".to_owned();
    put(admin, &[(CONFIG, "config", other)]).await?;
    pool.change(&json!({ "config": [{ "name": CONFIG }] }))
        .await?;
    let problem =
        "document 1 is of kind \"Pod\" in \"v1\", which is not supported as node configuration";
    let state = ("False", "ValidationFailed");
    pool.reports("ValidMachineConfig", state, &[problem])
        .await?;
    let held = user_data(admin, cluster.name, None).await?;
    ensure!(held == before, "{before} became {held}");
    put(admin, &[(CONFIG, "config", machine_config(CONFIG))]).await?;
    pool.reports("ValidMachineConfig", ("True", "AsExpected"), &[])
        .await?;
    user_data(admin, cluster.name, Some(&before))
        .await
        .map(drop)
}
