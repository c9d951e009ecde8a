//! Check T04: a HostedCluster and a NodePool that do not deserialize, written straight into etcd as an API server of another
//! version would have stored them. All others are reconciled, and the odd ones say why they are not.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::client::{ApiClient, Patch, Resource};
use testbed::conditions::{find, untrue};
use testbed::operator::SOON;
use testbed::testbed::Testbed;
use testbed::wait;

use crate::hosted_clusters_api::cluster::{Cluster, HOSTED_CLUSTERS, NODE_POOLS};
use crate::hosted_clusters_api::fixture::NAMESPACE;

const ODD: &str = "odd";
/// More than an int32 holds.
const TOO_LARGE: i64 = 4_294_967_296;

/// Both come, each cluster's pool is scaled meanwhile, and both go.
pub(crate) async fn objects_hold_up_no_other(testbed: &Testbed) -> Result<()> {
    let admin = &testbed.admin;
    let [cluster, _] = &Cluster::ALL;
    store(testbed, "nodepools", &cluster.pool(), |pool| {
        pool["spec"]["replicas"] = json!(TOO_LARGE);
    })
    .await?;
    store(testbed, "hostedclusters", cluster.name, |hosted| {
        hosted["spec"]["controllerAvailabilityPolicy"] = json!("Sometimes");
    })
    .await?;
    let pool = NODE_POOLS.named(NAMESPACE, ODD);
    says(admin, &pool, "ReconciliationActive", "4294967296").await?;
    let hosted = HOSTED_CLUSTERS.named(NAMESPACE, ODD);
    says(admin, &hosted, "ValidConfiguration", "Sometimes").await?;
    for cluster in Cluster::ALL {
        is_scaled(admin, &cluster).await.context(cluster.name)?;
    }
    for path in [pool, hosted] {
        admin.delete(&path).await?;
        wait::until(&format!("{path} to go"), SOON, async || {
            ensure!(admin.find(&path).await?.is_none(), "it is there");
            Ok(())
        })
        .await?;
    }
    Ok(())
}

/// Stores a changed copy of an object.
async fn store(
    testbed: &Testbed,
    plural: &str,
    name: &str,
    change: impl Fn(&mut Value),
) -> Result<()> {
    let etcd = &testbed.control_plane.etcd;
    let within = format!("/registry/hypershift.openshift.io/{plural}/{NAMESPACE}/");
    let stored = etcd.stored(&format!("{within}{name}")).await?;
    let source = stored.first().context("it is not stored")?;
    let mut object: Value = serde_json::from_slice(&source.value)?;
    object["metadata"] = json!({
        "namespace": NAMESPACE,
        "name": ODD,
        "uid": format!("00000000-0000-4000-8000-{:012}", plural.len()),
        "generation": 1,
        "creationTimestamp": object["metadata"]["creationTimestamp"],
    });
    object["status"] = json!({});
    change(&mut object);
    etcd.put(&format!("{within}{ODD}"), object.to_string().as_bytes())
        .await
}

/// Waits until a condition is False and names the value.
async fn says(admin: &ApiClient, path: &str, condition: &str, value: &str) -> Result<()> {
    wait::until(&format!("{path} to say what is wrong"), SOON, async || {
        let object = admin.get(path).await?;
        let reported = find(&object, condition);
        let reported = reported.with_context(|| format!("it says {}", untrue(&object)))?;
        let message = reported["message"].as_str().unwrap_or_default();
        ensure!(
            reported["status"] == "False" && message.contains(value),
            "{condition} is {reported}"
        );
        Ok(())
    })
    .await
}

/// Scales a pool, and waits for its MachineDeployment to follow.
async fn is_scaled(admin: &ApiClient, cluster: &Cluster) -> Result<()> {
    let deployments = Resource::new(cluster.version(false), "machinedeployments");
    let deployment = deployments.named(&cluster.namespace(), &cluster.pool());
    let pool = NODE_POOLS.named(NAMESPACE, &cluster.pool());
    for replicas in [4, 3] {
        let change = json!({ "spec": { "replicas": replicas } });
        admin.patch(&pool, Patch::Merge, &change).await?;
        wait::until("the MachineDeployment to follow", SOON, async || {
            let found = &admin.get(&deployment).await?["spec"]["replicas"];
            ensure!(*found == replicas, "it has {found}");
            Ok(())
        })
        .await?;
    }
    Ok(())
}
