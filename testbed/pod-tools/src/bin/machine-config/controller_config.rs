//! The `ControllerConfig`: what the operator finds out about the cluster, for the templates of the controller.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Result;
use crate::manifests::{API, Manifest};

/// Its kind.
pub(crate) const KIND: &str = "ControllerConfig";
/// Platforms whose nodes no external cloud provider initializes.
const WITHOUT_PROVIDER: [&str; 3] = ["Agent", "BareMetal", "None"];

/// Its spec. The real one has more fields, and others for some of these.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ControllerConfig {
    /// The platform of the machines, as the Infrastructure has it.
    pub(crate) platform: String,
    /// The addresses of the cluster's name service.
    pub(crate) cluster_dns: Vec<IpAddr>,
    /// The configuration of a cloud provider.
    pub(crate) cloud_config: String,
    pub(crate) proxy: Proxy,
    /// The authorities of the API server's certificate.
    pub(crate) root_ca: String,
    /// The authorities of the certificates of the kubelets' clients.
    pub(crate) kube_ca: String,
    /// Further authorities that machines trust.
    pub(crate) trust_bundle: String,
    pub(crate) release_image: String,
    /// The images of the release by their tags.
    pub(crate) images: BTreeMap<String, String>,
}

/// The status of the cluster's Proxy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Proxy {
    #[serde(rename = "httpProxy")]
    pub(crate) http: String,
    #[serde(rename = "httpsProxy")]
    pub(crate) https: String,
    /// What is reached without the proxy.
    #[serde(rename = "noProxy")]
    pub(crate) direct: String,
}

// === impl ControllerConfig ===

impl ControllerConfig {
    pub(crate) fn manifest(&self) -> Value {
        json!({
            "apiVersion": API,
            "kind": KIND,
            "metadata": { "name": "machine-config-controller" },
            "spec": self,
        })
    }

    pub(crate) fn read(manifest: &Manifest) -> Result<Self> {
        Self::deserialize(manifest.spec()).map_err(|error| manifest.invalid("spec", error))
    }

    /// What the kubelet is given as its cloud provider.
    pub(crate) fn cloud_provider(&self) -> &'static str {
        if WITHOUT_PROVIDER.contains(&self.platform.as_str()) {
            return "";
        }
        "external"
    }

    /// The image of a tag of the release.
    pub(crate) fn image(&self, tag: &str) -> Result<&str> {
        let image = self.images.get(tag).map(String::as_str);
        image.ok_or_else(|| format!("the release has no image {tag}"))
    }
}

// === impl Proxy ===

impl Proxy {
    /// Whether requests go through a proxy.
    pub(crate) fn is_set(&self) -> bool {
        !self.http.is_empty() || !self.https.is_empty()
    }

    /// The variables of services that use the proxy, one in each line.
    pub(crate) fn environment(&self) -> String {
        if !self.is_set() {
            return String::new();
        }
        let variables = [
            ("HTTP_PROXY", &self.http),
            ("HTTPS_PROXY", &self.https),
            ("NO_PROXY", &self.direct),
        ];
        let set = variables.iter().filter(|(_, value)| !value.is_empty());
        let lines: Vec<_> = set
            .map(|(name, value)| format!("{name}={value}\n"))
            .collect();
        lines.concat()
    }
}

/// The address of the cluster's name service in a range of Service addresses: the tenth one.
pub(crate) fn cluster_dns(network: &str) -> Option<IpAddr> {
    let (address, _) = network.split_once('/')?;
    match address.parse().ok()? {
        IpAddr::V4(address) => u32::from(address)
            .checked_add(10)
            .map(|tenth| Ipv4Addr::from(tenth).into()),
        IpAddr::V6(address) => u128::from(address)
            .checked_add(10)
            .map(|tenth| Ipv6Addr::from(tenth).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let written = ControllerConfig {
            platform: "AWS".to_owned(),
            cluster_dns: vec!["172.31.0.10".parse().unwrap()],
            images: BTreeMap::from([("pod".to_owned(), "images.example.com/pod".to_owned())]),
            ..ControllerConfig::default()
        };
        let manifest = Manifest::of(written.manifest());
        assert_eq!(ControllerConfig::read(&manifest).unwrap(), written);
        assert_eq!(written.image("pod"), Ok("images.example.com/pod"));
        assert_eq!(
            written.image("etcd"),
            Err("the release has no image etcd".to_owned())
        );
        let wrong = Manifest::of(json!({ "kind": KIND, "metadata": { "name": "a" }, "spec": {} }));
        let error = ControllerConfig::read(&wrong).unwrap_err();
        assert!(
            error.starts_with("ControllerConfig a: spec: missing field"),
            "{error}"
        );
    }

    #[test]
    fn the_name_service_has_the_tenth_address() {
        for (network, expected) in [
            ("172.31.0.0/16", Some("172.31.0.10")),
            ("fd02::/112", Some("fd02::a")),
            ("172.31.0.0", None),
        ] {
            let found = cluster_dns(network).map(|address| address.to_string());
            assert_eq!(found.as_deref(), expected, "{network}");
        }
    }

    #[test]
    fn a_proxy_without_addresses_is_none() {
        let mut proxy = Proxy {
            direct: ".svc".to_owned(),
            ..Proxy::default()
        };
        assert_eq!(proxy.environment(), "");
        proxy.https = "http://proxy.example.com:3128".to_owned();
        assert_eq!(
            proxy.environment(),
            "HTTPS_PROXY=http://proxy.example.com:3128\nNO_PROXY=.svc\n"
        );
    }
}
