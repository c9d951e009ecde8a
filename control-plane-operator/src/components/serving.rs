//! The serving section of OpenShift's configuration files.

use control_plane_component::{Context, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use super::edit;

/// Sets TLS version and ciphers. Without ciphers, those of the version are fixed.
pub(crate) fn tls(context: &Context<'_>, serving: &mut Value) {
    let tls = context.tls();
    serving["minTLSVersion"] = json!(tls.version());
    if !tls.ciphers.is_empty() {
        serving["cipherSuites"] = json!(tls.ciphers);
    }
}

/// Sets TLS version and ciphers in the configuration of a controller.
pub(super) fn controller_config(context: &Context<'_>, config_map: &mut ConfigMap) -> Result<()> {
    edit::config(config_map, "config.yaml", |config| {
        tls(context, &mut config["servingInfo"]);
        Ok(())
    })
}
