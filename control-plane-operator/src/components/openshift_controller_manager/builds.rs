//! Defaults and overrides of builds, from the guest's Build `cluster`.

use control_plane_component::{Context, Result};
use serde_json::{Map, Value, json};

use super::observed;

/// The `ConfigMap` with the guest's Build.
const OBSERVED: &str = "observed-config-build";
/// Fields of the defaults, apart from the proxy.
const DEFAULTS: [&str; 3] = ["env", "imageLabels", "resources"];
const OVERRIDES: [&str; 4] = ["imageLabels", "nodeSelector", "tolerations", "forcePull"];
/// Fields of the proxy for Git, in the guest and in the configuration.
const GIT_PROXY: [(&str, &str); 3] = [
    ("httpProxy", "gitHTTPProxy"),
    ("httpsProxy", "gitHTTPSProxy"),
    ("noProxy", "gitNoProxy"),
];

/// Sets the defaults and overrides that the guest configures.
pub(super) fn set(context: &Context<'_>, build: &mut Value) -> Result<()> {
    let observed = observed::object(context, OBSERVED)?;
    let spec = &observed["spec"];
    let defaults = defaults(&spec["buildDefaults"]);
    let overrides = chosen(&spec["buildOverrides"], &OVERRIDES);
    for (field, settings) in [("buildDefaults", defaults), ("buildOverrides", overrides)] {
        if !settings.is_empty() {
            build[field] = json!(settings);
        }
    }
    Ok(())
}

fn defaults(observed: &Value) -> Map<String, Value> {
    let mut settings = chosen(observed, &DEFAULTS);
    for (field, git) in GIT_PROXY {
        let value = &observed["gitProxy"][field];
        if is_set(value) {
            settings.insert(git.to_owned(), value.clone());
        }
    }
    settings
}

/// The fields that have a value.
fn chosen(observed: &Value, fields: &[&str]) -> Map<String, Value> {
    let fields = fields.iter().filter(|field| is_set(&observed[**field]));
    fields
        .map(|field| ((*field).to_owned(), observed[*field].clone()))
        .collect()
}

/// Go serializes some empty fields.
fn is_set(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => true,
    }
}
