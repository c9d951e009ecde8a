//! Configuration files of controllers that serve metrics.

use control_plane_component::{Context, Result};
use k8s_openapi::api::core::v1::ConfigMap;

use super::edit;

/// Sets TLS version and ciphers.
pub(super) fn adapt(context: &Context<'_>, config_map: &mut ConfigMap) -> Result<()> {
    edit::config(config_map, "config.yaml", |config| {
        edit::serving_tls(context, &mut config["servingInfo"]);
        Ok(())
    })
}
