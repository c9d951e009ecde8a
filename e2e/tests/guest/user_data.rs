//! User data of a worker, as small as they can be: the kubelet's unit, its configuration, and its bootstrap kubeconfig.

use anyhow::Result;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use testbed::node::NodeTestbed;

/// A bootstrap token of the fixture.
const TOKEN: &str = "abcdef.0123456789abcdef";
/// The variables come from the machine's metadata and from what it has for its kubelet.
const UNIT: &str = r"[Service]
EnvironmentFile=/run/metadata/afterburn
EnvironmentFile=-/etc/kubernetes/kubelet-env
ExecStartPre=/bin/mkdir --parents /etc/kubernetes/manifests
ExecStart=/usr/bin/kubelet \
  --config=/etc/kubernetes/kubelet.conf \
  --bootstrap-kubeconfig=/etc/kubernetes/kubeconfig \
  --kubeconfig=/var/lib/kubelet/kubeconfig \
  --container-runtime-endpoint=/var/run/crio/crio.sock \
  --hostname-override=${KUBELET_NODE_NAME} \
  --node-ip=${KUBELET_NODE_IP} \
  --provider-id=aws:///${AFTERBURN_AWS_AVAILABILITY_ZONE}/${AFTERBURN_AWS_INSTANCE_ID}
Restart=always

[Install]
WantedBy=multi-user.target
";

/// The document.
pub(crate) fn document(testbed: &NodeTestbed) -> Result<Value> {
    let endpoint = testbed.control_plane.endpoint();
    let authority = std::fs::read(&endpoint.authority)?;
    let name_service = testbed.namespaces().subnets().name_service();
    let config = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": { "enabled": false },
            "webhook": { "enabled": true },
            "x509": { "clientCAFile": "/etc/kubernetes/ca.crt" },
        },
        "authorization": { "mode": "Webhook" },
        "cgroupDriver": "systemd",
        "clusterDomain": "cluster.local",
        "clusterDNS": [name_service],
        "protectKernelDefaults": true,
        "rotateCertificates": true,
        "staticPodPath": "/etc/kubernetes/manifests",
    });
    let kubeconfig = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "c", "cluster": {
            "server": endpoint.server,
            "certificate-authority-data": STANDARD.encode(&authority),
        } }],
        "users": [{ "name": "u", "user": { "token": TOKEN } }],
        "contexts": [{ "name": "x", "context": { "cluster": "c", "user": "u" } }],
        "current-context": "x",
    });
    Ok(json!({
        "ignition": { "version": "3.2.0" },
        "storage": { "files": [
            file("/etc/kubernetes/kubelet.conf", config.to_string().as_bytes()),
            file("/etc/kubernetes/kubeconfig", kubeconfig.to_string().as_bytes()),
            file("/etc/kubernetes/ca.crt", &authority),
        ] },
        "systemd": { "units": [{ "name": "kubelet.service", "enabled": true, "contents": UNIT }] },
    }))
}

fn file(path: &str, content: &[u8]) -> Value {
    let source = format!("data:text/plain;base64,{}", STANDARD.encode(content));
    json!({ "path": path, "mode": 0o600, "overwrite": true, "contents": { "source": source } })
}
