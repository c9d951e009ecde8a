//! What the operator is told about the management cluster and about itself: flags, and the same as a value.

use std::collections::BTreeMap;
use std::str::FromStr;

use api::group::Side;
use api::hypershift::v1beta1::monitoring::MetricsSet;
use clap::{Args, ValueEnum};

/// Flags that decide what is rendered.
#[derive(Debug, Clone, Args)]
pub struct SettingsArgs {
    /// Image of this program. Its components run from it, too.
    #[arg(
        long,
        value_name = "IMAGE",
        env = "CONTROL_PLANE_OPERATOR_IMAGE",
        default_value = "control-plane-operator"
    )]
    pub control_plane_operator_image: String,
    /// Images that are taken in place of those of the release. Comma-separated.
    #[arg(
        long,
        value_name = "NAME=IMAGE,...",
        env = "IMAGE_OVERRIDES",
        default_value = ""
    )]
    pub image_overrides: Pairs,
    /// Registries that stand for others. Comma-separated.
    #[arg(
        long,
        value_name = "SOURCE=MIRROR,...",
        env = "REGISTRY_OVERRIDES",
        default_value = ""
    )]
    pub registry_overrides: Pairs,
    /// Mirrors of the management cluster. Comma-separated; a source may come several times.
    #[arg(
        long,
        value_name = "SOURCE=MIRROR,...",
        env = "OPENSHIFT_IMG_OVERRIDES",
        default_value = ""
    )]
    pub openshift_img_overrides: Pairs,
    /// Names of the API groups that Cluster API's objects are stored in.
    #[arg(long, value_enum, env = "CAPI_TYPES", default_value_t = CapiTypes::Standard)]
    pub capi_types: CapiTypes,
    /// Image of the proxy beside controllers that speak Cluster API. Needed with `--capi-types private`.
    #[arg(long, value_name = "IMAGE", env = "IMAGE_CAPI_PROXY")]
    pub capi_proxy_image: Option<String>,
    /// Domain of the management cluster's routes.
    #[arg(
        long,
        value_name = "DOMAIN",
        env = "DEFAULT_INGRESS_DOMAIN",
        default_value = ""
    )]
    pub default_ingress_domain: String,
    /// User that pods run as, where the management cluster does not choose one.
    #[arg(long, value_name = "UID", env = "DEFAULT_SECURITY_CONTEXT_UID")]
    pub default_security_context_uid: Option<i64>,
    /// The managed service that this is part of, if any.
    #[arg(long, value_name = "NAME", env = "MANAGED_SERVICE")]
    pub managed_service: Option<String>,
    /// Which metrics of the control plane are collected, unless the cluster says so itself. Without it, all that
    /// somebody looks at.
    #[arg(long, value_enum, env = "METRICS_SET")]
    pub metrics_set: Option<CollectedMetrics>,
    /// API groups of the management cluster beyond Kubernetes' own, of which objects may be made. Comma-separated.
    /// `run` asks the API server.
    #[arg(
        long,
        value_name = "GROUP,...",
        value_delimiter = ',',
        default_value = "monitoring.coreos.com,route.openshift.io,image.openshift.io,\
                         secrets-store.csi.x-k8s.io"
    )]
    pub served_groups: Vec<String>,
}

/// Under which names Cluster API's groups are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CapiTypes {
    /// Beside the platform's own, under names of ours: controllers get the proxy.
    Private,
    /// Under the names that controllers know.
    Standard,
}

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

/// The proxy's image is missing in private mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "--capi-types private needs the proxy beside controllers: give --capi-proxy-image (or the variable IMAGE_CAPI_PROXY)"
)]
pub struct NoProxyImage;

// === impl Settings ===

#[cfg(test)]
impl Settings {
    /// Those of a management cluster that has nothing special.
    pub(crate) fn for_tests() -> Self {
        Self {
            own_image: "own".to_owned(),
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

// === impl SettingsArgs ===

impl SettingsArgs {
    /// Checks what flags cannot check one by one.
    pub fn settings(&self) -> Result<Settings, NoProxyImage> {
        let capi = match self.capi_types {
            CapiTypes::Private if self.capi_proxy_image.is_none() => return Err(NoProxyImage),
            CapiTypes::Private => Side::Private,
            CapiTypes::Standard => Side::Standard,
        };
        Ok(Settings {
            own_image: self.control_plane_operator_image.clone(),
            image_overrides: self.image_overrides.0.iter().cloned().collect(),
            registry_overrides: self.registry_overrides.clone(),
            openshift_img_overrides: self.openshift_img_overrides.clone(),
            capi,
            capi_proxy_image: self.capi_proxy_image.clone(),
            default_ingress_domain: self.default_ingress_domain.clone(),
            uid: self.default_security_context_uid,
            managed_service: self.managed_service.clone(),
            metrics_set: self.metrics_set.map(MetricsSet::from),
            served_groups: self.served_groups.clone(),
        })
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
