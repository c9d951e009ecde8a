//! The serving section of OpenShift's configuration files.

use control_plane_component::Context;
use serde_json::{Value, json};

/// Sets TLS version and ciphers. Without ciphers, those of the version are fixed.
pub(crate) fn tls(context: &Context<'_>, serving: &mut Value) {
    let tls = context.tls();
    serving["minTLSVersion"] = json!(tls.version());
    if !tls.ciphers.is_empty() {
        serving["cipherSuites"] = json!(tls.ciphers);
    }
}
