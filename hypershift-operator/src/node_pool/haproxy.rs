//! The load balancer on each node in front of the API server: pods reach it at a fixed address.
//!
//! A MachineConfig with three parts: the address on the loopback interface, the configuration, and a static pod. Control
//! planes of older releases publish it themselves.
//!
//! Another text does not replace nodes whose pods reach the same address of the API server by the same image
//! ([`is_same`]): it reaches them with the next change that does.

mod observed;

use api::annotations::node_pool::HAPROXY_IMAGE;
use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use api::hypershift::v1beta1::node_pool::NodePool;
use api::hypershift::v1beta1::platform::PlatformType;
use api::hypershift::v1beta1::platform::aws::AwsEndpointAccess;
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

/// The MachineConfig; `None` if the platform has its own. An error has what is waited for.
pub(crate) fn machine_config(
    pool: &NodePool,
    cluster: &HostedCluster,
    release: &Release,
) -> Result<Option<Manifest>, String> {
    if pool.spec.platform.type_ == PlatformType::IbmCloud {
        return Ok(None);
    }
    let local = local(cluster);
    let remote = remote(cluster)
        .ok_or("Waiting for the HostedCluster to report the address of its API server")?;
    local.validate("spec.networking.apiServer.advertiseAddress")?;
    remote.validate("status.controlPlaneEndpoint.host")?;
    let annotations = pool.metadata.annotations.clone().unwrap_or_default();
    let image = match HAPROXY_IMAGE.get(&annotations) {
        Ok(Some(image)) => image,
        Ok(None) | Err(_) => release
            .component(COMPONENT)
            .map_err(|error| error.to_string())?
            .to_owned(),
    };
    let spec = json!({ "config": {
        "ignition": { "version": "3.2.0" },
        "storage": { "files": [
            file(&format!("{CONFIG}/haproxy.cfg"), &config(&local, &remote)),
            file(MANIFEST, &canonical::text(&pod(&image, &local))),
        ] },
        "systemd": { "units": [unit(&local.host)] },
    } });
    Ok(Some(Manifest::machine_config(NAME, &spec)))
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
    let aws = cluster.spec.platform.aws.as_ref();
    let is_private = aws.is_some_and(|it| match it.endpoint_access {
        AwsEndpointAccess::Public => false,
        AwsEndpointAccess::PublicAndPrivate | AwsEndpointAccess::Private => true,
    });
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
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "kube-apiserver-proxy",
            "namespace": "kube-system",
            "labels": { "k8s-app": "kube-apiserver-proxy" },
        },
        "spec": {
            "hostNetwork": true,
            "priorityClassName": "system-node-critical",
            "containers": [{
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
                "ports": [{ "name": "apiserver", "containerPort": local.port, "hostPort": local.port, "protocol": "TCP" }],
                "resources": { "requests": { "cpu": "13m", "memory": "16Mi" } },
                "securityContext": { "runAsUser": 1001 },
                "volumeMounts": [{ "name": "config", "mountPath": "/usr/local/etc/haproxy" }],
            }],
            "volumes": [{ "name": "config", "hostPath": { "path": CONFIG } }],
        },
    })
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
mod tests {
    use super::*;
    use crate::node_pool::config::Content;
    use crate::node_pool::fixtures;

    #[test]
    fn nodes_reach_the_api_server_through_local_haproxy() {
        let (local, remote) = (
            local(&fixtures::cluster()),
            remote(&fixtures::cluster()).unwrap(),
        );
        let config = config(&local, &remote);
        assert!(config.contains("bind 172.20.0.1:6443\n"), "{config}");
        assert!(
            config.contains("server controlplane api.dev.example.com:6443 check"),
            "{config}"
        );
    }

    #[test]
    fn private_clusters_use_the_internal_name() {
        let mut cluster = fixtures::cluster();
        cluster.spec.platform.aws.as_mut().unwrap().endpoint_access = AwsEndpointAccess::Private;
        assert_eq!(remote(&cluster).unwrap().host, "api.dev.hypershift.local");
        cluster.status.as_mut().unwrap().control_plane_endpoint = None;
        assert!(remote(&cluster).is_none());
    }

    #[test]
    fn private_clusters_are_reached_at_the_port_of_their_service() {
        for (access, strategy, expected) in [
            (AwsEndpointAccess::Public, "Route", 30443),
            (AwsEndpointAccess::Private, "Route", 443),
            (AwsEndpointAccess::Private, "LoadBalancer", 6443),
            (AwsEndpointAccess::PublicAndPrivate, "Route", 443),
        ] {
            let mut cluster = fixtures::cluster();
            cluster.spec.platform.aws.as_mut().unwrap().endpoint_access = access;
            let services = json!([
                { "service": "Ignition", "servicePublishingStrategy": { "type": "Route" } },
                { "service": "APIServer", "servicePublishingStrategy": { "type": strategy } },
            ]);
            cluster.spec.services = serde_json::from_value(services).unwrap();
            let status = cluster.status.as_mut().unwrap();
            status.control_plane_endpoint.as_mut().unwrap().port = 30443;
            let port = remote(&cluster).unwrap().port;
            assert_eq!(port, expected, "{access:?} {strategy}");
        }
    }

    /// The control planes of some releases publish the load balancer. Later ones leave it to this operator, and what they
    /// published stays.
    #[test]
    fn a_published_load_balancer_counts_while_the_control_plane_has_it() {
        let core = ["ignition-config-fips", PUBLISHED].map(|name| Source {
            name: name.to_owned(),
            content: Content::Empty,
        });
        let skips = [(Capability::SkipsHaproxy.label(), "true".to_owned())];
        for (capabilities, expected) in [
            (Capabilities::default(), 2),
            (Capabilities::unknown(), 2),
            (Capabilities::of_labels(&skips.into()), 1),
        ] {
            let counts = published(&core, &capabilities);
            assert_eq!(counts.len(), expected, "{capabilities:?}");
            assert_eq!(counts[0].name, "ignition-config-fips");
        }
    }

    #[test]
    fn haproxy_addresses_follow_the_cluster() {
        let mut cluster = fixtures::cluster();
        cluster.spec.networking.service_network[0].cidr.0 = "fd02::/112".to_owned();
        assert_eq!(local(&cluster).written(), "[fd00::1]:6443");
        assert!(
            unit("fd00::1")["contents"]
                .as_str()
                .unwrap()
                .contains("fd00::1/128")
        );
    }

    /// Check O07: what this version makes is what earlier versions made, in other words.
    #[test]
    fn another_text_of_the_load_balancer_replaces_no_nodes() {
        let (cluster, release) = (fixtures::cluster(), fixtures::release("4.22.0"));
        let made = |cluster: &HostedCluster| {
            let made = machine_config(&fixtures::pool(), cluster, &release);
            let text = made.unwrap().unwrap().text();
            serde_json::from_str::<Value>(&text).unwrap()["spec"].clone()
        };
        let desired = made(&cluster);
        let mut earlier = desired.clone();
        let config = config(&local(&cluster), &remote(&cluster).unwrap());
        let config = config.replace("  timeout client-fin 5s\n", "");
        let config = config.replace("  timeout server-fin 5s\n", "");
        earlier["config"]["storage"]["files"][0] = file(&format!("{CONFIG}/haproxy.cfg"), &config);
        assert_ne!(earlier, desired);
        assert!(is_same(&earlier, &desired));
        let mut moved = fixtures::cluster();
        let status = moved.status.as_mut().unwrap();
        status.control_plane_endpoint.as_mut().unwrap().port = 443;
        assert!(!is_same(&made(&moved), &desired));
    }

    /// Check T16: nothing but an address or a name gets into the load balancer's configuration.
    #[test]
    fn haproxy_config_rejects_injected_settings() {
        let release = fixtures::release("4.22.0");
        for (field, host, expected) in [
            ("advertiseAddress", "10.0.0.1", true),
            ("advertiseAddress", "fd00::1", true),
            ("advertiseAddress", "10.0.0.1:6443\n  stats enable", false),
            ("host", "api.example.com\n  server other 192.0.2.1:1", false),
        ] {
            let mut cluster = fixtures::cluster();
            if field == "host" {
                let status = cluster.status.as_mut().unwrap();
                status.control_plane_endpoint.as_mut().unwrap().host = host.to_owned();
            } else {
                let settings = serde_json::json!({ "advertiseAddress": host });
                cluster.spec.networking.api_server = serde_json::from_value(settings).unwrap();
            }
            let made = machine_config(&fixtures::pool(), &cluster, &release);
            assert_eq!(made.is_ok(), expected, "{host:?}: {made:?}");
            if let Err(message) = made {
                assert!(message.contains(field), "{message}");
            }
        }
    }
}
