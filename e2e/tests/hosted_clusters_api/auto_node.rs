//! Karpenter is switched on and off. Its programs do not run: the test writes the reports of both.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testbed::client::{ApiClient, Patch, Resource};
use testbed::hosted::COMPONENTS;
use testbed::operator::SOON;
use testbed::wait;

use crate::hosted_clusters_api::cluster::{
    CONTROL_PLANES, Cluster, DEPLOYMENTS, HOSTED_CLUSTERS, ROLES, SECRETS, gone,
};
use crate::hosted_clusters_api::fixture::NAMESPACE;

/// The condition of the HostedCluster.
const ENABLED: &str = "AutoNodeEnabled";
/// Karpenter's operator, and Karpenter.
const PROGRAMS: [&str; 2] = ["karpenter-operator", "karpenter"];
/// The Secret with the kubeconfig of Karpenter's operator, which the control-plane-operator would make.
const KUBECONFIG: &str = "hcco-kubeconfig";
const ROLE: &str = "arn:aws:iam::123456789012:role/karpenter";
const BINDINGS: Resource<'_> = Resource::new("rbac.authorization.k8s.io/v1", "rolebindings");

/// Switches it on for a cluster whose control plane is available, and off again.
pub(crate) async fn comes_and_goes(cluster: &Cluster, admin: &ApiClient) -> Result<()> {
    let namespace = cluster.namespace();
    let secret = SECRETS.named(&namespace, KUBECONFIG);
    let had_secret = admin.find(&secret).await?.is_some();
    if !had_secret {
        admin.apply(&[kubeconfig(&namespace)]).await?;
    }
    let karpenter = json!({ "platform": "AWS", "aws": { "roleARN": ROLE } });
    let settings = json!({ "provisionerConfig": { "name": "Karpenter", "karpenter": karpenter } });
    switch(cluster, admin, &settings).await?;
    let [operator, _] = PROGRAMS;
    let own = [
        DEPLOYMENTS.named(&namespace, operator),
        ROLES.named(&namespace, operator),
        BINDINGS.named(&namespace, operator),
    ];
    for path in &own {
        wait::until(&format!("{path} to be made"), SOON, async || {
            admin.get(path).await.map(drop)
        })
        .await?;
    }
    let waits = "karpenter-operator: it has not reported yet";
    cluster.reports(admin, ENABLED, "False", waits).await?;
    for name in PROGRAMS {
        report(admin, &namespace, name).await?;
    }
    let counts = json!({ "status": { "autoNode": { "nodeCount": 1, "nodeClaimCount": 1 } } });
    let control_plane = CONTROL_PLANES.named(&namespace, cluster.name);
    let status = format!("{control_plane}/status");
    admin.patch(&status, Patch::Merge, &counts).await?;
    cluster.reports(admin, ENABLED, "True", "").await?;

    switch(cluster, admin, &Value::Null).await?;
    cluster
        .reports(admin, ENABLED, "False", "spec.autoNode is not set")
        .await?;
    gone(admin, own).await?;
    gone(
        admin,
        PROGRAMS.map(|name| COMPONENTS.named(&namespace, name)),
    )
    .await?;
    wait::until("the counts to be cleared", SOON, async || {
        let found = admin.get(&control_plane).await?;
        let left = &found["status"]["autoNode"];
        ensure!(left.is_null(), "they are {left}");
        Ok(())
    })
    .await?;
    if !had_secret {
        admin.delete(&secret).await?;
    }
    Ok(())
}

async fn switch(cluster: &Cluster, admin: &ApiClient, settings: &Value) -> Result<()> {
    let path = HOSTED_CLUSTERS.named(NAMESPACE, cluster.name);
    let desired = json!({ "spec": { "autoNode": settings } });
    admin.patch(&path, Patch::Merge, &desired).await.map(drop)
}

fn kubeconfig(namespace: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "namespace": namespace, "name": KUBECONFIG },
        "stringData": { "kubeconfig": "{}" },
    })
}

/// What a component reports when it is rolled out.
async fn report(admin: &ApiClient, namespace: &str, name: &str) -> Result<()> {
    let object = json!({
        "apiVersion": COMPONENTS.api_version,
        "kind": "ControlPlaneComponent",
        "metadata": { "namespace": namespace, "name": name },
        "spec": {},
    });
    admin.apply(&[object]).await?;
    let condition = |kind: &str| {
        json!({
            "type": kind,
            "status": "True",
            "reason": "AsExpected",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    let conditions = ["Available", "RolloutComplete"].map(condition);
    let status = json!({ "status": { "conditions": conditions } });
    let path = format!("{}/status", COMPONENTS.named(namespace, name));
    admin.patch(&path, Patch::Merge, &status).await.map(drop)
}
