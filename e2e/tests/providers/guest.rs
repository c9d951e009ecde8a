//! The cluster that machines join: the testbed's own.

use anyhow::{Context, Result};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use testbed::testbed::Testbed;

/// The name of the cluster with machines.
pub(crate) const GUEST: &str = "guest";
/// Who reaches the API server of the cluster.
const USER: &str = "guest";

/// The API server that machines join, as clients on this machine reach it.
#[derive(Debug)]
pub(crate) struct Guest {
    kubeconfig: String,
    pub(crate) host: String,
    pub(crate) port: String,
}

// === impl Guest ===

impl Guest {
    pub(crate) fn new(testbed: &Testbed) -> Result<Self> {
        let server = testbed.control_plane.endpoint().server;
        let address = server.trim_start_matches("https://");
        let (host, port) = address
            .rsplit_once(':')
            .with_context(|| format!("{server} has no port"))?;
        Ok(Self {
            kubeconfig: kubeconfig(testbed)?,
            host: host.to_owned(),
            port: port.to_owned(),
        })
    }

    /// What is in a cluster's namespace before its machines: their user data, and how its API server is reached.
    pub(crate) fn secrets(&self, namespace: &str) -> Vec<Value> {
        let user_data = r#"{"ignition":{"version":"3.2.0"}}"#;
        let kubeconfig = self.kubeconfig.as_str();
        let secrets = [
            ("user-data", "Opaque", user_data),
            ("guest-kubeconfig", "cluster.x-k8s.io/secret", kubeconfig),
        ];
        let objects = secrets.map(|(name, kind, value)| {
            json!({
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {
                    "namespace": namespace,
                    "name": name,
                    "labels": { "cluster.x-k8s.io/cluster-name": GUEST },
                },
                "type": kind,
                "stringData": { "value": value },
            })
        });
        objects.to_vec()
    }
}

/// What a provider of control planes would report of the cluster.
pub(crate) fn initialized() -> Value {
    json!({ "status": {
        "initialization": { "infrastructureProvisioned": true, "controlPlaneInitialized": true },
        "conditions": [{
            "type": "ControlPlaneInitialized",
            "status": "True",
            "reason": "Initialized",
            "message": "",
            "lastTransitionTime": "2026-11-22T00:00:00Z",
        }],
    } })
}

/// A kubeconfig of the cluster, for a Secret.
fn kubeconfig(testbed: &Testbed) -> Result<String> {
    let group = Some("system:masters");
    let certificate = testbed.control_plane.authority.client(USER, USER, group)?;
    let endpoint = testbed.control_plane.endpoint();
    let encoded = |path: &std::path::Path| {
        let bytes = std::fs::read(path);
        let bytes = bytes.with_context(|| format!("cannot read {}", path.display()));
        bytes.map(|bytes| STANDARD.encode(bytes))
    };
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "guest", "cluster": {
            "server": endpoint.server,
            "certificate-authority-data": encoded(&endpoint.authority)?,
        } }],
        "users": [{ "name": "guest", "user": {
            "client-certificate-data": encoded(&certificate.certificate)?,
            "client-key-data": encoded(&certificate.key)?,
        } }],
        "contexts": [{ "name": "guest", "context": { "cluster": "guest", "user": "guest" } }],
        "current-context": "guest",
    });
    Ok(config.to_string())
}
