//! The cluster that machines join: the testbed's own.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use testbed::kubeconfig::whole;
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
        let control_plane = &testbed.control_plane;
        let endpoint = control_plane.endpoint();
        let address = endpoint.server.trim_start_matches("https://");
        let (host, port) = address
            .rsplit_once(':')
            .with_context(|| format!("{} has no port", endpoint.server))?;
        let group = Some("system:masters");
        let certificate = control_plane.authority.client(USER, USER, group)?;
        Ok(Self {
            kubeconfig: whole(&endpoint, &certificate)?.to_string(),
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
