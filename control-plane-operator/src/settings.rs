//! The flags that decide what is rendered.

use api::group::Side;
use api::hypershift::v1beta1::monitoring::MetricsSet;
use clap::{Args, ValueEnum};
use control_plane_component::settings::{CollectedMetrics, Pairs, Settings};

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
    /// are collected.
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

/// The proxy's image is missing in private mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "--capi-types private needs the proxy beside controllers: give --capi-proxy-image (or the variable IMAGE_CAPI_PROXY)"
)]
pub struct NoProxyImage;

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
