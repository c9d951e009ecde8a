//! Configuration in the guest that hosted-cluster-config-operator copies to `ConfigMaps` of the control plane.

use control_plane_component::{Context, Error, Result};
use serde_json::Value;

/// Key in the `ConfigMaps`.
const KEY: &str = "config";

/// Returns the object that a `ConfigMap` holds, or null if the guest has none.
pub(super) fn object(context: &Context<'_>, config_map: &str) -> Result<Value> {
    let Some(text) = context.objects.config_value(config_map, KEY) else {
        return Ok(Value::Null);
    };
    serde_saphyr::from_str(&text).map_err(|_| {
        let what = format!("an object in key {KEY}, YAML");
        Error::missing(format!("ConfigMap {config_map}"), what)
    })
}
