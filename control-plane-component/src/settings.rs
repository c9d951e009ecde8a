//! What is known of the management cluster and of the operator that renders.

use std::collections::BTreeMap;
use std::str::FromStr;

use api::group::Side;
use api::hypershift::v1beta1::monitoring::MetricsSet;
use clap::ValueEnum;

/// Which metrics of a control plane are collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub enum CollectedMetrics {
    /// Those that telemetry needs.
    Telemetry,
    /// Those that the ConfigMap sre-metric-set chooses.
    #[value(name = "SRE")]
    Sre,
    /// All.
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

/// `name=value` pairs, comma-separated, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pairs(pub Vec<(String, String)>);

/// What is known of the management cluster and of this program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Image of this program.
    pub own_image: String,
    /// Image by name of a component; wins over the release.
    pub image_overrides: BTreeMap<String, String>,
    /// Registries that stand for others.
    pub registry_overrides: Pairs,
    /// Mirrors of the management cluster.
    pub openshift_img_overrides: Pairs,
    /// Under which names Cluster API's groups are stored.
    pub capi: Side,
    /// The proxy's image, in private mode.
    pub capi_proxy_image: Option<String>,
    /// Domain of the management cluster's routes; may be empty.
    pub default_ingress_domain: String,
    /// User that pods run as, where one has to be said.
    pub uid: Option<i64>,
    /// The managed service that this is part of.
    pub managed_service: Option<String>,
    /// Which metrics are collected, unless the cluster says so itself.
    pub metrics_set: Option<MetricsSet>,
    /// API groups beyond Kubernetes' own that the management cluster serves.
    pub served_groups: Vec<String>,
}

// === impl Settings ===

impl Settings {
    /// The settings of an operator with this image, on a management cluster without anything optional.
    pub fn new(own_image: impl Into<String>) -> Self {
        Self {
            own_image: own_image.into(),
            image_overrides: BTreeMap::new(),
            registry_overrides: Pairs::default(),
            openshift_img_overrides: Pairs::default(),
            capi: Side::Standard,
            capi_proxy_image: None,
            default_ingress_domain: String::new(),
            uid: None,
            managed_service: None,
            metrics_set: None,
            served_groups: Vec::new(),
        }
    }
}

// === impl Pairs ===

impl Pairs {
    /// All values of each name, in their order.
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
                _ => Err(format!("{pair:?} is no pair: write name=value,name=value")),
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
    fn pairs_are_read_and_written() {
        for text in ["", "a=b", "a=b,a=c=d"] {
            assert_eq!(text.parse::<Pairs>().unwrap().to_string(), text);
        }
        for text in ["a", "=b", "a=", "a=b,c"] {
            assert!(text.parse::<Pairs>().is_err(), "{text}");
        }
    }
}
