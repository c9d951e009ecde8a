//! The objects and the status of a control plane, where no control-plane-operator runs.

use std::time::Duration;

use anyhow::Result;
use control_plane_component::node_config;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use crate::client::{ApiClient, Patch, Resource};
use crate::wait;

/// The host of the route by which nodes find their configuration.
const IGNITION: &str = "ignition.example.com";
const KUBECONFIG: &str = "a kubeconfig";
const CONTROL_PLANES: Resource<'_> =
    Resource::new("hypershift.openshift.io/v1beta1", "hostedcontrolplanes");
/// How long its operator may take to request it.
const SOON: Duration = Duration::from_mins(1);

/// Makes the control plane of a hosted cluster look available, once it is there.
pub async fn control_plane_comes_up(admin: &ApiClient, clusters: &str, name: &str) -> Result<()> {
    let namespace = format!("{clusters}-{name}");
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
        core_config(&namespace, node_config::FIPS, &node_config::fips(false)),
        core_config(&namespace, node_config::SSH, &node_config::ssh(None)),
    ];
    admin.apply(&made).await?;
    let status_patch = json!({ "status": {
        "ready": true,
        "initialized": true,
        "externalManagedControlPlane": true,
        "version": "4.22.0",
        "controlPlaneEndpoint": { "host": "api.example.com", "port": 6443 },
        "kubeConfig": { "name": "admin-kubeconfig", "key": "kubeconfig" },
        "conditions": conditions(),
    }});
    let status = format!("{path}/status");
    admin.patch(&status, Patch::Merge, &status_patch).await?;
    Ok(())
}

/// A ConfigMap that the configuration of all pools begins with.
fn core_config(namespace: &str, name: &str, spec: &Value) -> Value {
    let manifest = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": { "name": name },
        "spec": spec,
    });
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "namespace": namespace,
            "name": format!("ignition-config-{name}"),
            "labels": { "hypershift.openshift.io/core-ignition-config": "true" },
        },
        "data": { "config": manifest.to_string() },
    })
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
    let conditions = good.map(|kind| {
        json!({
            "type": kind,
            "status": "True",
            "reason": "AsExpected",
            "message": "",
            "lastTransitionTime": now,
        })
    });
    conditions.into()
}
