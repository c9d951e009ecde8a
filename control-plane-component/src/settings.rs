//! Settings of the management cluster and of the operator.

use std::collections::BTreeMap;
use std::str::FromStr;

use api::group::CapiTypes;
use api::hypershift::v1beta1::monitoring::MetricsSet;
use clap::ValueEnum;

use crate::proxy::OwnProxy;

/// The managed service Azure Red Hat OpenShift.
pub const ARO: &str = "ARO-HCP";

/// Which metrics of a control plane are collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub enum CollectedMetrics {
    /// Metrics for telemetry.
    Telemetry,
    /// Metrics selected in ConfigMap sre-metric-set.
    #[value(name = "SRE")]
    Sre,
    /// All metrics.
    All,
}

impl From<CollectedMetrics> for MetricsSet {
    fn from(collected: CollectedMetrics) -> Self {
        match collected {
            CollectedMetrics::Telemetry => Self::Telemetry,
            CollectedMetrics::Sre => Self::Sre,
            CollectedMetrics::All => Self::All,
        }
    }
}

/// The Prometheus of the management cluster that scrapes control planes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MonitoringStack {
    /// That of the platform.
    #[default]
    Platform,
    /// That of the observability operator, which has an API group of its own.
    Rhobs,
}

// === impl MonitoringStack ===

impl MonitoringStack {
    /// API group of monitors and rules.
    pub fn group(self) -> &'static str {
        match self {
            Self::Platform => "monitoring.coreos.com",
            Self::Rhobs => "monitoring.rhobs",
        }
    }

    /// API version of objects of this version in manifests: monitors are in the group of the Prometheus that reads them.
    pub fn api_version(self, version: String) -> String {
        let platform = Self::Platform.group();
        match version.strip_prefix(platform) {
            Some(version) => format!("{}{version}", self.group()),
            None => version,
        }
    }
}

/// Ordered, comma-separated `name=value` pairs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pairs(pub Vec<(String, String)>);

/// Settings of the management cluster and of this operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Image of this operator.
    pub own_image: String,
    /// Image overrides by name; they take precedence over the release.
    pub image_overrides: BTreeMap<String, String>,
    /// Registry overrides.
    pub registry_overrides: Pairs,
    /// Image mirrors of the management cluster.
    pub openshift_img_overrides: Pairs,
    /// Registries that are reached without TLS.
    pub insecure_registries: Vec<String>,
    /// The Cluster API groups that objects are stored in.
    pub capi_types: CapiTypes,
    /// Image of the proxy; required for private types.
    pub capi_proxy_image: Option<String>,
    /// Domain of the management cluster's Routes; may be empty.
    pub default_ingress_domain: String,
    /// User ID of pods, if the management cluster does not assign one.
    pub uid: Option<i64>,
    /// The managed service that runs this operator.
    pub managed_service: Option<String>,
    /// Client ID of the identity with which certificates of managed identities are read from Azure's key vaults.
    pub azure_key_vault_client_id: Option<String>,
    /// Default metrics set, for clusters that do not configure one.
    pub metrics_set: Option<MetricsSet>,
    /// The Prometheus of the management cluster that scrapes control planes.
    pub monitoring: MonitoringStack,
    /// What counts as a day in the lifetimes of break-glass certificates, if it is not one.
    pub cert_rotation_scale: Option<String>,
    /// Whether the cluster-version-operator reads metrics of the management cluster, for the risks of updates.
    pub version_metrics: bool,
    /// URL of the Prometheus that it reads, if it is not the default one.
    pub version_metrics_url: Option<String>,
    /// The proxy that this operator uses.
    pub proxy: OwnProxy,
    /// API groups that the management cluster serves, in addition to the built-in ones.
    pub served_groups: Vec<String>,
}

// === impl Settings ===

impl Settings {
    /// Default settings for an operator image.
    pub fn new(own_image: impl Into<String>) -> Self {
        Self {
            own_image: own_image.into(),
            image_overrides: BTreeMap::new(),
            registry_overrides: Pairs::default(),
            openshift_img_overrides: Pairs::default(),
            insecure_registries: Vec::new(),
            capi_types: CapiTypes::Standard,
            capi_proxy_image: None,
            default_ingress_domain: String::new(),
            uid: None,
            managed_service: None,
            azure_key_vault_client_id: None,
            metrics_set: None,
            monitoring: MonitoringStack::default(),
            cert_rotation_scale: None,
            version_metrics: false,
            version_metrics_url: None,
            proxy: OwnProxy::default(),
            served_groups: Vec::new(),
        }
    }
}

// === impl Pairs ===

impl Pairs {
    /// Groups the values by name, in order.
    pub fn grouped(&self) -> BTreeMap<String, Vec<String>> {
        let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in &self.0 {
            all.entry(name.clone()).or_default().push(value.clone());
        }
        all
    }
}

impl FromStr for Pairs {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let pairs = text
            .split(',')
            .map(str::trim)
            .filter(|pair| !pair.is_empty());
        let pairs: Result<_, String> = pairs
            .map(|pair| match pair.split_once('=') {
                Some((name, value)) if !name.is_empty() && !value.is_empty() => {
                    Ok((name.to_owned(), value.to_owned()))
                }
                _ => Err(format!(
                    "{pair:?} is not a name=value pair: use name=value,name=value"
                )),
            })
            .collect();
        pairs.map(Self)
    }
}

impl std::fmt::Display for Pairs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, (name, value)) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{name}={value}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_parse_and_format() {
        for text in ["", "a=b", "a=b,a=c=d"] {
            assert_eq!(text.parse::<Pairs>().unwrap().to_string(), text);
        }
        for text in ["a", "=b", "a=", "a=b,c"] {
            assert!(text.parse::<Pairs>().is_err(), "{text}");
        }
    }
}
