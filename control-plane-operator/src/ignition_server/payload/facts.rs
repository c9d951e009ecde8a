//! What is known of the hosted cluster.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use api::hypershift::v1beta1::image_content_source::ImageContentSource;
use api::hypershift::v1beta1::platform::PlatformType;
use serde_json::Value;

/// What the payloads of all pools have in common.
#[derive(Clone)]
pub(in crate::ignition_server) struct Facts {
    /// Where the machines run.
    pub(in crate::ignition_server) platform: PlatformType,
    /// How a machine asks for a certificate of its own.
    pub(in crate::ignition_server) bootstrap_kubeconfig: Vec<u8>,
    /// Authorities of those who may ask the kubelet, PEM.
    pub(in crate::ignition_server) kubelet_ca: String,
    /// Addresses of the cluster's DNS.
    pub(in crate::ignition_server) cluster_dns: Vec<IpAddr>,
    /// Credentials for registries.
    pub(in crate::ignition_server) pull_secret: Vec<u8>,
    /// Who may log in as `core`.
    pub(in crate::ignition_server) ssh_keys: Vec<String>,
    /// Authorities that are trusted beside those of the operating system, PEM.
    pub(in crate::ignition_server) trust_bundle: Option<String>,
    /// The way to the internet.
    pub(in crate::ignition_server) proxy: Option<Proxy>,
    /// Registries that stand for others.
    pub(in crate::ignition_server) mirrors: Vec<ImageContentSource>,
    /// Taints that a node has from its first moment on.
    pub(in crate::ignition_server) taints: Vec<Value>,
}

/// The way to the internet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::ignition_server) struct Proxy {
    pub(in crate::ignition_server) http: String,
    pub(in crate::ignition_server) https: String,
    /// What is reached without it.
    pub(in crate::ignition_server) direct: Vec<String>,
}

// === impl Proxy ===

impl Proxy {
    /// Where services find it.
    pub(super) const FILE: &'static str = "/etc/mco/proxy.env";

    /// The variables, one a line.
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

/// The address of the cluster's DNS in a network of Services: the tenth.
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
