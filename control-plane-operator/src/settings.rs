//! Flags of rendering.

use api::group::CapiTypes;
use api::hypershift::v1beta1::monitoring::MetricsSet;
use clap::Args;
use clap::builder::{FalseyValueParser, PossibleValuesParser, TypedValueParser};
use control_plane_component::proxy::OwnProxy;
use control_plane_component::settings::{CollectedMetrics, MonitoringStack, Pairs, Settings};

/// Flags of rendering.
#[derive(Debug, Clone, Args)]
pub struct SettingsArgs {
    /// Image of this operator, and of components that use it.
    #[arg(
        long,
        value_name = "IMAGE",
        env = "CONTROL_PLANE_OPERATOR_IMAGE",
        default_value = "control-plane-operator"
    )]
    pub control_plane_operator_image: String,
    /// Images that override those of the release. Comma-separated.
    #[arg(
        long,
        value_name = "NAME=IMAGE,...",
        env = "IMAGE_OVERRIDES",
        default_value = ""
    )]
    pub image_overrides: Pairs,
    /// Registry overrides. Comma-separated.
    #[arg(
        long,
        value_name = "SOURCE=MIRROR,...",
        env = "REGISTRY_OVERRIDES",
        default_value = ""
    )]
    pub registry_overrides: Pairs,
    /// Image mirrors of the management cluster. Comma-separated; sources may be repeated.
    #[arg(
        long,
        value_name = "SOURCE=MIRROR,...",
        env = "OPENSHIFT_IMG_OVERRIDES",
        default_value = ""
    )]
    pub openshift_img_overrides: Pairs,
    /// API groups of Cluster API objects: private or standard.
    #[arg(
        long,
        env = "CAPI_TYPES",
        default_value_t = CapiTypes::Standard,
        value_parser = capi_types()
    )]
    pub capi_types: CapiTypes,
    /// Image of the proxy sidecar for controllers that use Cluster API. Required with `--capi-types private`.
    #[arg(long, value_name = "IMAGE", env = "IMAGE_CAPI_PROXY")]
    pub capi_proxy_image: Option<String>,
    /// Domain of the management cluster's Routes.
    #[arg(
        long,
        value_name = "DOMAIN",
        env = "DEFAULT_INGRESS_DOMAIN",
        default_value = ""
    )]
    pub default_ingress_domain: String,
    /// User ID of pods, if the management cluster does not assign one.
    #[arg(long, value_name = "UID", env = "DEFAULT_SECURITY_CONTEXT_UID")]
    pub default_security_context_uid: Option<i64>,
    /// Managed service that runs this operator, if any.
    #[arg(long, value_name = "NAME", env = "MANAGED_SERVICE")]
    pub managed_service: Option<String>,
    /// Client ID of the identity that reads certificates of managed identities from Azure's key vaults.
    #[arg(long, value_name = "ID", env = "ARO_HCP_KEY_VAULT_USER_CLIENT_ID")]
    pub azure_key_vault_client_id: Option<String>,
    /// Default metrics set of clusters that do not configure one. If it is not set, all metrics are collected.
    #[arg(long, value_enum, env = "METRICS_SET")]
    pub metrics_set: Option<CollectedMetrics>,
    /// What counts as a day in the lifetimes of break-glass certificates, for tests. Default: 24h.
    #[arg(long, value_name = "TIME", env = "CERT_ROTATION_SCALE")]
    pub cert_rotation_scale: Option<String>,
    /// Create monitors for the observability operator (API group monitoring.rhobs) instead of the platform's Prometheus.
    #[arg(long, env = "RHOBS_MONITORING", value_parser = FalseyValueParser::new())]
    pub rhobs_monitoring: bool,
    /// Let the cluster-version-operator read metrics of the management cluster, for the risks of updates.
    #[arg(
        long,
        env = "ENABLE_CVO_MANAGEMENT_CLUSTER_METRICS_ACCESS",
        value_parser = FalseyValueParser::new()
    )]
    pub enable_cvo_management_cluster_metrics_access: bool,
    /// URL of the Prometheus that the cluster-version-operator reads.
    #[arg(long, value_name = "URL", env = "CVO_PROMETHEUS_URL")]
    pub cvo_prometheus_url: Option<String>,
    /// Proxy for HTTP connections to clouds. Containers that access a cloud get it, too.
    #[arg(long, value_name = "URL", env = "HTTP_PROXY", hide_env_values = true)]
    pub management_http_proxy: Option<String>,
    /// Proxy for HTTPS connections to clouds. Containers that access a cloud get it, too.
    #[arg(long, value_name = "URL", env = "HTTPS_PROXY", hide_env_values = true)]
    pub management_https_proxy: Option<String>,
    /// Names and addresses that are reached without this proxy. Comma-separated.
    #[arg(long, value_name = "NAME,...", env = "NO_PROXY", value_delimiter = ',')]
    pub management_no_proxy: Vec<String>,
    /// API groups that the management cluster serves in addition to the built-in ones. Comma-separated. `run` uses API
    /// discovery instead.
    #[arg(
        long,
        value_name = "GROUP,...",
        value_delimiter = ',',
        default_value = "monitoring.coreos.com,route.openshift.io,image.openshift.io,\
                         secrets-store.csi.x-k8s.io"
    )]
    pub served_groups: Vec<String>,
}

/// The proxy image is required for private types.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("--capi-types private requires --capi-proxy-image (or the variable IMAGE_CAPI_PROXY)")]
pub struct NoProxyImage;

/// Parses `--capi-types`, and lists both values in `--help`.
pub(crate) fn capi_types() -> impl TypedValueParser<Value = CapiTypes> {
    PossibleValuesParser::new([CapiTypes::Private, CapiTypes::Standard].map(CapiTypes::as_str))
        .try_map(|text| text.parse::<CapiTypes>())
}

// === impl SettingsArgs ===

impl SettingsArgs {
    /// Validates the flags, and converts them to settings.
    pub fn settings(&self) -> Result<Settings, NoProxyImage> {
        let capi_types = match self.capi_types {
            CapiTypes::Private if self.capi_proxy_image.is_none() => return Err(NoProxyImage),
            types => types,
        };
        Ok(Settings {
            own_image: self.control_plane_operator_image.clone(),
            image_overrides: self.image_overrides.0.iter().cloned().collect(),
            registry_overrides: self.registry_overrides.clone(),
            openshift_img_overrides: self.openshift_img_overrides.clone(),
            insecure_registries: Vec::new(),
            capi_types,
            capi_proxy_image: self.capi_proxy_image.clone(),
            default_ingress_domain: self.default_ingress_domain.clone(),
            uid: self.default_security_context_uid,
            managed_service: self.managed_service.clone(),
            azure_key_vault_client_id: self.azure_key_vault_client_id.clone(),
            metrics_set: self.metrics_set.map(MetricsSet::from),
            monitoring: self.monitoring(),
            cert_rotation_scale: self.cert_rotation_scale.clone(),
            version_metrics: self.enable_cvo_management_cluster_metrics_access,
            version_metrics_url: self
                .cvo_prometheus_url
                .clone()
                .filter(|url| !url.is_empty()),
            proxy: self.proxy(),
            served_groups: self.served_groups.clone(),
        })
    }

    fn monitoring(&self) -> MonitoringStack {
        if self.rhobs_monitoring {
            return MonitoringStack::Rhobs;
        }
        MonitoringStack::Platform
    }

    /// An empty variable is the same as none.
    fn proxy(&self) -> OwnProxy {
        let url = |url: &Option<String>| url.clone().filter(|url| !url.is_empty());
        let exempt = self.management_no_proxy.iter().map(|name| name.trim());
        let exempt = exempt.filter(|name| !name.is_empty());
        OwnProxy {
            http: url(&self.management_http_proxy),
            https: url(&self.management_https_proxy),
            exempt: exempt.map(str::to_owned).collect(),
        }
    }
}
