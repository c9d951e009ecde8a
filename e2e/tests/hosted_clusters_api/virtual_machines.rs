//! Clusters of virtual machines where there is no KubeVirt: that is reported, with what to do, and nothing is created.

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use testbed::client::ApiClient;
use testbed::simulation;
use testbed::testbed::Testbed;

use crate::hosted_clusters_api::cluster::{Cluster, gone};
use crate::hosted_clusters_api::fixture::{Fixture, NAMESPACE};

/// The Secret that leads to an infrastructure cluster.
const SECRET: &str = "infrastructure";
const KEY: &str = "kubeconfig";

/// Tries one on this management cluster, and one on another.
pub(crate) async fn are_refused(testbed: &Testbed, fixture: &Fixture) -> Result<()> {
    let admin = &testbed.admin;
    let here = Cluster::private("virtual-here");
    create(admin, fixture, &here, json!({})).await?;
    let expected = "the management cluster, which runs the virtual machines (spec.platform.kubevirt), has no KubeVirt";
    says(admin, &here, expected).await?;
    let elsewhere = Cluster::private("virtual-elsewhere");
    let kubeconfig = kubeconfig(testbed).await?;
    // It names files, which are none of a user's business here.
    secret(admin, &kubeconfig).await?;
    let credentials = json!({
        "infraKubeConfigSecret": { "name": SECRET, "key": KEY },
        "infraNamespace": "machines",
    });
    create(
        admin,
        fixture,
        &elsewhere,
        json!({ "credentials": credentials }),
    )
    .await?;
    says(
        admin,
        &elsewhere,
        "has certificate-authority, which refers to a file or program",
    )
    .await?;
    secret(admin, &whole(kubeconfig)?).await?;
    let expected = format!(
        "the infrastructure cluster of Secret {NAMESPACE}/{SECRET}, key {KEY}, \
         (spec.platform.kubevirt.credentials.infraKubeConfigSecret) has no KubeVirt"
    );
    says(admin, &elsewhere, &expected).await?;
    for cluster in [here, elsewhere] {
        let namespace = format!("/api/v1/namespaces/{}", cluster.namespace());
        ensure!(
            admin.find(&namespace).await?.is_none(),
            "{namespace} is made for a cluster that cannot be"
        );
        admin.delete(&cluster.path()).await?;
        gone(admin, [cluster.path(), namespace]).await?;
    }
    Ok(())
}

async fn create(admin: &ApiClient, fixture: &Fixture, of: &Cluster, kubevirt: Value) -> Result<()> {
    let mut objects = simulation::desired(of.name, &fixture.release)?;
    objects.retain(|object| object["kind"] != "NodePool");
    for object in &mut objects {
        if object["kind"] == "HostedCluster" {
            object["spec"]["platform"] = json!({ "type": "KubeVirt", "kubevirt": kubevirt });
            publish_on_nodes(object);
        }
    }
    admin.apply(&objects).await
}

/// Has all services of a HostedCluster be on ports of nodes.
fn publish_on_nodes(cluster: &mut Value) {
    let ports = json!({ "type": "NodePort", "nodePort": { "address": "192.0.2.10" } });
    let services = cluster["spec"]["services"].as_array_mut();
    for service in services.into_iter().flatten() {
        service["servicePublishingStrategy"] = ports.clone();
    }
}

async fn says(admin: &ApiClient, cluster: &Cluster, expected: &str) -> Result<()> {
    cluster
        .reports(admin, "ValidConfiguration", "False", expected)
        .await
}

/// A kubeconfig for the testbed's own API server.
async fn kubeconfig(testbed: &Testbed) -> Result<Value> {
    let (_account, path) = testbed.superuser(NAMESPACE, SECRET).await?;
    let text = std::fs::read(&path)?;
    serde_json::from_slice(&text).with_context(|| path.display().to_string())
}

/// The same with what it names in it.
fn whole(mut kubeconfig: Value) -> Result<Value> {
    let cluster = &mut kubeconfig["clusters"][0]["cluster"];
    let authority = std::fs::read(text(&cluster["certificate-authority"])?)?;
    *cluster = json!({
        "server": cluster["server"],
        "certificate-authority-data": STANDARD.encode(authority),
    });
    let user = &mut kubeconfig["users"][0]["user"];
    let token = std::fs::read_to_string(text(&user["tokenFile"])?)?;
    *user = json!({ "token": token.trim() });
    Ok(kubeconfig)
}

fn text(value: &Value) -> Result<&str> {
    value.as_str().context("there is no file")
}

async fn secret(admin: &ApiClient, kubeconfig: &Value) -> Result<()> {
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "namespace": NAMESPACE, "name": SECRET },
        "stringData": { KEY: kubeconfig.to_string() },
    });
    admin.apply(&[secret]).await
}
