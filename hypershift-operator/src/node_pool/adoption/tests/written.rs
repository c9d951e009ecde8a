//! What another operator has written for nodes: its configuration, the Secret with it, and its template for machines.

use api::annotations::node_pool::IGNITION_CONFIG;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::*;

pub(super) const LIMITS: &str = "
# For databases.
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata: {name: limits}
spec:
  kernelArguments: [nosmt]
  config: {ignition: {version: 3.2.0}}
";

/// A MachineConfig as an operator writes it that reads manifests into types of its own.
pub(super) fn machine_config(name: &str, config: &Value, arguments: &Value) -> String {
    let object = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": {
            "creationTimestamp": null,
            "labels": { "machineconfiguration.openshift.io/role": "worker" },
            "name": name,
        },
        "spec": {
            "baseOSExtensionsContainerImage": "",
            "config": config,
            "extensions": null,
            "fips": false,
            "kernelArguments": arguments,
            "kernelType": "",
            "osImageURL": "",
        },
    });
    serde_saphyr::to_string(&object).unwrap()
}

/// The load balancer in the words of another operator.
pub(super) fn load_balancer() -> String {
    let digest = "a".repeat(64);
    let pod = format!(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  creationTimestamp: null\n  name: kube-apiserver-proxy\nspec:\n  \
         containers:\n  - command:\n    - haproxy\n    - -f\n    - /usr/local/etc/haproxy\n    \
         image: mirror.example.com/haproxy@sha256:{digest}\n    name: haproxy\nstatus: {{}}\n"
    );
    let haproxy = "frontend local_apiserver\n  bind 172.20.0.1:6443\n\nbackend remote_apiserver\n  \
                   option httpchk GET /version\n  server controlplane api.dev.example.com:6443\n";
    way_to_the_api_server(&[
        (
            "/etc/kubernetes/apiserver-proxy-config/haproxy.cfg",
            haproxy,
        ),
        ("/etc/kubernetes/manifests/kube-apiserver-proxy.yaml", &*pod),
    ])
}

/// Its MachineConfig with such files.
pub(super) fn way_to_the_api_server(files: &[(&str, &str)]) -> String {
    let script = (
        "/usr/local/bin/setup-apiserver-ip.sh",
        "#!/usr/bin/env bash\n",
    );
    let files = [&[script][..], files].concat();
    let files = files.into_iter().map(|(path, content)| {
        let content = BASE64.encode(content);
        let source = format!("data:text/plain;charset=utf-8;base64,{content}");
        let contents = json!({ "source": source, "verification": {} });
        json!({ "contents": contents, "group": {}, "mode": 420, "overwrite": true, "path": path, "user": {} })
    });
    let files: Vec<_> = files.collect();
    let config = json!({ "ignition": { "version": "3.2.0" }, "storage": { "files": files } });
    machine_config("20-apiserver-haproxy", &config, &Value::Null)
}

/// The whole configuration of another operator.
pub(super) fn configuration() -> String {
    configuration_with(load_balancer())
}

pub(super) fn configuration_with(way_to_the_api_server: String) -> String {
    let ignition = json!({ "config": {}, "security": { "tls": {} }, "version": "3.2.0" });
    let plain = json!({ "ignition": ignition, "passwd": {}, "storage": {}, "systemd": {} });
    let mut ssh = plain.clone();
    ssh["passwd"] = json!({ "users": [{ "name": "core" }] });
    let limits = json!({ "ignition": { "version": "3.2.0" } });
    [
        way_to_the_api_server,
        machine_config("30-fips", &plain, &Value::Null),
        machine_config("99-worker-ssh", &ssh, &Value::Null),
        machine_config("limits", &limits, &json!(["nosmt"])),
    ]
    .join("\n---\n")
}

pub(super) fn token(hash: &str, config: &str) -> Secret {
    let annotations = [
        (NODE_POOL.key(), "clusters/workers"),
        (IGNITION_CONFIG.key(), "true"),
    ];
    let data = [
        ("token", b"a-token".to_vec()),
        ("release-version", b"4.22.0".to_vec()),
        ("config", secrets::compressed(config)),
        ("pull-secret-hash", b"0b0c0d0e".to_vec()),
        ("additional-trust-bundle-hash", Vec::new()),
        ("hc-configuration-hash", b"77074ba4".to_vec()),
        ("os-stream", b"rhel-9".to_vec()),
    ];
    let mut secret = Secret::default();
    secret.metadata.namespace = Some("clusters-dev".to_owned());
    secret.metadata.name = Some(format!("token-workers-{hash}"));
    let annotations = annotations.map(|(key, value)| (key.to_owned(), value.to_owned()));
    secret.metadata.annotations = Some(annotations.into());
    let data = data.map(|(key, value)| (key.to_owned(), ByteString(value)));
    secret.data = Some(data.into());
    secret
}

/// Machines as another operator has them made, with a default of the API server.
pub(super) fn machine() -> Value {
    json!({
        "additionalTags": { "kubernetes.io/cluster/dev-x1y2z": "owned", "team": "a" },
        "ami": { "id": "ami-0123" },
        "cloudInit": { "insecureSkipSecretsManager": true },
        "iamInstanceProfile": "dev-x1y2z-worker-profile",
        "instanceMetadataOptions": {
            "httpEndpoint": "enabled",
            "httpPutResponseHopLimit": 2,
            "httpTokens": "optional",
            "instanceMetadataTags": "disabled",
        },
        "instanceType": "m5.large",
        "networkInterfaceType": "interface",
        "rootVolume": { "size": 16 },
        "sshKeyName": "",
        "subnet": { "id": "subnet-1" },
        "uncompressedUserData": true,
    })
}
