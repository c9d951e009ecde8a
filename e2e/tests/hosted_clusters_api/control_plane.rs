//! What a control plane would make and tell, written by the test.

use anyhow::{Context, Result, ensure};
use e2e::client::{ApiClient, Patch};
use e2e::operator::SOON;
use e2e::wait;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use crate::cluster::{CONTROL_PLANES, SECRETS};
use crate::ground::NAMESPACE;

/// The host of the route by which nodes find their configuration.
const IGNITION: &str = "ignition.example.com";
const KUBECONFIG: &str = "a kubeconfig";

/// Makes a control plane look available, once it is there.
pub(crate) async fn comes_up(admin: &ApiClient, name: &str) -> Result<()> {
    let namespace = format!("{NAMESPACE}-{name}");
    let path = CONTROL_PLANES.named(&namespace, name);
    wait::until("the HostedControlPlane", SOON, async || {
        admin.get(&path).await.map(drop)
    })
    .await?;
    let secret = |name: &str, key: &str, text: &str| {
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": { "namespace": namespace, "name": name },
            "stringData": { key: text },
        })
    };
    let route = json!({
        "apiVersion": "route.openshift.io/v1",
        "kind": "Route",
        "metadata": { "namespace": namespace, "name": "ignition-server" },
        "spec": { "host": IGNITION, "to": { "kind": "Service", "name": "ignition-server" } },
    });
    let made = [
        secret("admin-kubeconfig", "kubeconfig", KUBECONFIG),
        secret("ignition-server-ca-cert", "tls.crt", "an authority"),
        route,
    ];
    admin.apply(&made).await?;
    let told = json!({ "status": {
        "ready": true,
        "initialized": true,
        "externalManagedControlPlane": true,
        "version": "4.22.0",
        "controlPlaneEndpoint": { "host": "api.example.com", "port": 6443 },
        "kubeConfig": { "name": "admin-kubeconfig", "key": "kubeconfig" },
        "conditions": conditions(),
    }});
    let status = format!("{path}/status");
    admin.patch(&status, Patch::Merge, &told).await?;
    Ok(())
}

fn conditions() -> Vec<Value> {
    let now = Timestamp::now().to_string();
    let now = now.split('.').next().map(|time| format!("{time}Z"));
    let good = [
        "Available",
        "InfrastructureReady",
        "KubeAPIServerAvailable",
        "EtcdAvailable",
        "ValidHostedControlPlaneConfiguration",
    ];
    let told = good.map(|kind| {
        json!({
            "type": kind,
            "status": "True",
            "reason": "AsExpected",
            "message": "",
            "lastTransitionTime": now,
        })
    });
    told.into()
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
