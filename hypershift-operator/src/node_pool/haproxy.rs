//! The load balancer on each node in front of the API server: pods reach it at a fixed address.
//!
//! A MachineConfig with three parts: the address on the loopback interface, the configuration, and a static pod. Control
//! planes of older releases publish it themselves.
//!
//! Where nodes reach the API server through an HTTP proxy, the static pod is a program of the control-plane-operator
//! instead, without a configuration ([`proxied`]).
//!
//! Another text does not replace nodes whose pods reach the same address of the API server by the same image
//! ([`is_same`]): it reaches them with the next change that does.

mod observed;
mod proxied;

use api::annotations::node_pool::HAPROXY_IMAGE;
use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use api::hypershift::v1beta1::node_pool::NodePool;
use api::hypershift::v1beta1::platform::PlatformType;
use api::hypershift::v1beta1::platform::aws::AwsEndpointAccess;
use api::hypershift::v1beta1::platform::azure::AzureTopology;
use api::hypershift::v1beta1::services::{PublishingStrategyType, ServiceType};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use payload::{Capabilities, Capability, Release};
use serde_json::{Value, json};

use super::config::Source;
use super::manifest::Manifest;
use crate::canonical;
pub(crate) use observed::is_same;

/// The MachineConfig's name.
pub(crate) const NAME: &str = "20-apiserver-haproxy";
/// The ConfigMap in which a control plane publishes it.
const PUBLISHED: &str = "ignition-config-apiserver-haproxy";
/// The component whose image has the program.
const COMPONENT: &str = "haproxy-router";
/// The address, and the port, that pods see the API server at.
const ADDRESS: &str = "172.20.0.1";
const ADDRESS_V6: &str = "fd00::1";
const PORT: i32 = 6443;
/// The port of Routes.
const ROUTE_PORT: i32 = 443;
/// Where the configuration is.
const CONFIG: &str = "/etc/kubernetes/apiserver-proxy-config";
const MANIFEST: &str = "/etc/kubernetes/manifests/kube-apiserver-proxy.yaml";

/// What a control plane publishes for its nodes. If it leaves the load balancer to this operator, an earlier release of it
/// may have left one behind, which no longer counts.
pub(crate) fn published(core: &[Source], capabilities: &Capabilities) -> Vec<Source> {
    let skips = capabilities.has(Capability::SkipsHaproxy);
    let counts = core.iter().filter(|it| !skips || it.name != PUBLISHED);
    counts.cloned().collect()
}

/// Whether nodes may run the control-plane-operator's image, because there is a proxy between them and the API server.
pub(crate) fn has_proxy(cluster: &HostedCluster) -> bool {
    proxied::url(cluster).is_some()
}

/// The MachineConfig; `None` if the platform has its own. An error has what is waited for. `operator` is the image of the
/// control-plane-operator, which is only needed with a proxy.
pub(crate) fn machine_config(
    pool: &NodePool,
    cluster: &HostedCluster,
    release: &Release,
    operator: Option<&str>,
) -> Result<Option<Manifest>, String> {
    if pool.spec.platform.type_ == PlatformType::IbmCloud {
        return Ok(None);
    }
    let local = local(cluster);
    let remote = remote(cluster)
        .ok_or("Waiting for the HostedCluster to report the address of its API server")?;
    local.validate("spec.networking.apiServer.advertiseAddress")?;
    remote.validate("status.controlPlaneEndpoint.host")?;
    let files = match proxied::proxy(cluster, &local, &remote)? {
        None => {
            let pod = pod(&image(pool, release)?, &local);
            vec![
                file(&format!("{CONFIG}/haproxy.cfg"), &config(&local, &remote)),
                file(MANIFEST, &canonical::text(&pod)),
            ]
        }
        Some(proxy) => {
            let image = operator.ok_or(
                "Waiting for the image of the control-plane-operator, which nodes run behind the proxy of the cluster: see \
                 the conditions of the HostedCluster",
            )?;
            let container = proxied::container(image, &local, &proxy, &remote);
            vec![file(
                MANIFEST,
                &canonical::text(&static_pod(container, &local)),
            )]
        }
    };
    let spec = json!({ "config": {
        "ignition": { "version": "3.2.0" },
        "storage": { "files": files },
        "systemd": { "units": [unit(&local.host)] },
    } });
    Ok(Some(Manifest::machine_config(NAME, &spec)))
}

/// The load balancer's image.
fn image(pool: &NodePool, release: &Release) -> Result<String, String> {
    let annotations = pool.metadata.annotations.clone().unwrap_or_default();
    match HAPROXY_IMAGE.get(&annotations) {
        Ok(Some(image)) => Ok(image),
        Ok(None) | Err(_) => release
            .component(COMPONENT)
            .map(str::to_owned)
            .map_err(|error| error.to_string()),
    }
}

/// Where something listens.
struct Endpoint {
    host: String,
    port: i32,
}

/// Where the load balancer listens.
fn local(cluster: &HostedCluster) -> Endpoint {
    let networking = &cluster.spec.networking;
    let settings = networking.api_server.clone().unwrap_or_default();
    let is_v6 = networking
        .service_network
        .first()
        .is_some_and(|it| it.cidr.0.contains(':'));
    let address = if is_v6 { ADDRESS_V6 } else { ADDRESS };
    Endpoint {
        host: settings
            .advertise_address
            .unwrap_or_else(|| address.to_owned()),
        port: settings.port.unwrap_or(PORT),
    }
}

/// Where it leads to.
fn remote(cluster: &HostedCluster) -> Option<Endpoint> {
    let endpoint = cluster.status.as_ref()?.control_plane_endpoint.as_ref()?;
    if endpoint.host.is_empty() {
        return None;
    }
    let is_private = is_private(cluster);
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    let host = if is_private {
        format!("api.{name}.hypershift.local")
    } else {
        endpoint.host.clone()
    };
    let mut services = cluster.spec.services.iter();
    let is_route = services.any(|it| {
        it.service == ServiceType::ApiServer
            && it.service_publishing_strategy.type_ == PublishingStrategyType::Route
    });
    // The published port is that of the public address.
    let port = match (is_private, is_route) {
        (false, _) => endpoint.port,
        (true, true) => ROUTE_PORT,
        (true, false) => PORT,
    };
    Some(Endpoint { host, port })
}

/// Whether nodes reach the API server by a name in their own network.
fn is_private(cluster: &HostedCluster) -> bool {
    let platform = &cluster.spec.platform;
    let aws = platform.aws.as_ref().map(|it| match it.endpoint_access {
        AwsEndpointAccess::Public => false,
        AwsEndpointAccess::PublicAndPrivate | AwsEndpointAccess::Private => true,
    });
    let topology = platform.azure.as_ref().and_then(|it| it.topology);
    let azure = topology.map(|it| match it {
        AzureTopology::Public => false,
        AzureTopology::PublicAndPrivate | AzureTopology::Private => true,
    });
    // All access to clusters on Google Cloud is also private.
    platform.gcp.is_some() || [aws, azure].contains(&Some(true))
}

fn config(local: &Endpoint, remote: &Endpoint) -> String {
    format!(
        "global
  maxconn 7000
  log stdout local0 notice

defaults
  mode tcp
  log global
  option dontlognull
  retries 3
  timeout connect 10s
  timeout queue 5s
  timeout client 10m
  timeout client-fin 5s
  timeout server 10m
  timeout server-fin 5s

frontend local
  bind {}
  default_backend remote

backend remote
  option httpchk GET /version
  default-server inter 10s fall 3 rise 3
  server controlplane {} check check-ssl verify none
",
        local.written(),
        remote.written()
    )
}

/// The address is configured before other units use it.
fn unit(address: &str) -> Value {
    let length = if address.contains(':') { 128 } else { 32 };
    let contents = format!(
        "[Unit]
Description=The address at which pods reach the API server
Wants=network.target
After=network.target
Before=kubelet.service crio.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/sbin/ip address replace {address}/{length} dev lo scope host
ExecStop=/usr/sbin/ip address delete {address}/{length} dev lo

[Install]
WantedBy=multi-user.target
"
    );
    json!({ "name": "apiserver-ip.service", "enabled": true, "contents": contents })
}

fn pod(image: &str, local: &Endpoint) -> Value {
    let container = json!({
        "name": "haproxy",
        "image": image,
        "command": ["haproxy", "-f", "/usr/local/etc/haproxy/haproxy.cfg"],
        "livenessProbe": {
            "httpGet": { "host": local.host, "path": "/version", "port": local.port, "scheme": "HTTPS" },
            "failureThreshold": 3,
            "initialDelaySeconds": 120,
            "periodSeconds": 120,
            "timeoutSeconds": 180,
        },
        "volumeMounts": [{ "name": "config", "mountPath": "/usr/local/etc/haproxy" }],
    });
    let mut pod = static_pod(container, local);
    pod["spec"]["volumes"] = json!([{ "name": "config", "hostPath": { "path": CONFIG } }]);
    pod
}

/// The static pod with a container that listens at the local address.
fn static_pod(mut container: Value, local: &Endpoint) -> Value {
    let port = local.port;
    container["ports"] = json!([{ "name": "apiserver", "containerPort": port, "hostPort": port, "protocol": "TCP" }]);
    container["resources"] = json!({ "requests": { "cpu": "13m", "memory": "16Mi" } });
    container["securityContext"] = json!({ "runAsUser": 1001 });
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "kube-apiserver-proxy",
            "namespace": "kube-system",
            "labels": { "k8s-app": "kube-apiserver-proxy" },
        },
        "spec": { "hostNetwork": true, "priorityClassName": "system-node-critical" },
    });
    pod["spec"]["containers"] = Value::Array(vec![container]);
    pod
}

fn file(path: &str, content: &str) -> Value {
    let source = format!(
        "data:text/plain;charset=utf-8;base64,{}",
        BASE64.encode(content)
    );
    json!({ "path": path, "mode": 0o644, "overwrite": true, "contents": { "source": source } })
}

// === impl Endpoint ===

impl Endpoint {
    /// The configuration and the unit are text without escapes: only an address or a name of DNS gets into them.
    fn validate(&self, field: &str) -> Result<(), String> {
        let host = &self.host;
        let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b".:-".contains(&byte);
        if !host.is_empty() && host.bytes().all(is_known) {
            return Ok(());
        }
        Err(format!(
            "{field} of the HostedCluster is {host:?}, which is neither an IP address nor a DNS name"
        ))
    }

    fn written(&self) -> String {
        let Self { host, port } = self;
        if host.contains(':') {
            return format!("[{host}]:{port}");
        }
        format!("{host}:{port}")
    }
}

#[cfg(test)]
mod tests;
