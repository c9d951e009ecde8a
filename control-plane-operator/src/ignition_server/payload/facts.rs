//! Properties of the hosted cluster.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use api::hypershift::v1beta1::image_content_source::ImageContentSource;
use api::hypershift::v1beta1::platform::PlatformType;
use serde_json::Value;

/// Inputs that the payloads of all pools share.
#[derive(Clone)]
pub(in crate::ignition_server) struct Facts {
    /// Platform of the machines.
    pub(in crate::ignition_server) platform: PlatformType,
    /// The kubeconfig with which a machine requests its certificate.
    pub(in crate::ignition_server) bootstrap_kubeconfig: Vec<u8>,
    /// CA bundle for client certificates of the kubelet API, PEM.
    pub(in crate::ignition_server) kubelet_ca: String,
    /// Cluster DNS addresses.
    pub(in crate::ignition_server) cluster_dns: Vec<IpAddr>,
    /// The pull secret.
    pub(in crate::ignition_server) pull_secret: Vec<u8>,
    /// SSH keys of user `core`.
    pub(in crate::ignition_server) ssh_keys: Vec<String>,
    /// Additional trusted CAs, PEM.
    pub(in crate::ignition_server) trust_bundle: Option<String>,
    /// Proxy configuration.
    pub(in crate::ignition_server) proxy: Option<Proxy>,
    /// Registry mirrors.
    pub(in crate::ignition_server) mirrors: Vec<ImageContentSource>,
    /// Taints that a node registers with.
    pub(in crate::ignition_server) taints: Vec<Value>,
}

/// Proxy configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::ignition_server) struct Proxy {
    pub(in crate::ignition_server) http: String,
    pub(in crate::ignition_server) https: String,
    /// Hosts that are reached without the proxy.
    pub(in crate::ignition_server) direct: Vec<String>,
}

// === impl Proxy ===

impl Proxy {
    /// Path of the environment file.
    pub(super) const FILE: &'static str = "/etc/mco/proxy.env";

    /// Formats the environment variables, one per line.
    pub(super) fn environment(&self) -> String {
        let direct = self.direct.join(",");
        let variables = [
            ("HTTP_PROXY", &self.http),
            ("HTTPS_PROXY", &self.https),
            ("NO_PROXY", &direct),
        ];
        let set = variables.into_iter().filter(|(_, value)| !value.is_empty());
        let lines: Vec<_> = set
            .map(|(name, value)| format!("{name}={value}\n"))
            .collect();
        lines.concat()
    }
}

/// The cluster DNS address in a Service CIDR: the tenth address.
pub(in crate::ignition_server) fn cluster_dns(network: &str) -> Option<IpAddr> {
    let (address, _) = network.split_once('/')?;
    match address.parse().ok()? {
        IpAddr::V4(address) => {
            let tenth = u32::from(address).checked_add(10)?;
            Some(Ipv4Addr::from(tenth).into())
        }
        IpAddr::V6(address) => {
            let tenth = u128::from(address).checked_add(10)?;
            Some(Ipv6Addr::from(tenth).into())
        }
    }
}
