//! The guest's `FeatureGate`: as requested, and as rendered by the release.

use control_plane_component::{Context, Error, Result};
use serde_json::{Value, json};

/// The `ConfigMap` with the rendered `FeatureGate`.
pub(crate) const CONFIG_MAP: &str = "feature-gate";
/// Key in the `ConfigMap`.
pub(crate) const KEY: &str = "feature-gate.yaml";

/// The feature set of which the user names the features.
const CUSTOM: &str = "CustomNoUpgrade";

/// Features and whether they are enabled, in the order of the release: enabled ones first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Features(pub(crate) Vec<(String, bool)>);

/// The `FeatureGate` that the hosted control plane requests, as YAML.
pub(crate) fn requested(context: &Context<'_>) -> String {
    let configuration = context.spec().configuration.as_ref();
    let gate = configuration.and_then(|configuration| configuration.feature_gate.as_ref());
    let mut spec = json!({});
    if let Some(set) = context.feature_set() {
        spec["featureSet"] = json!(set);
    }
    if let Some(custom) = gate.and_then(|gate| gate.custom_no_upgrade.as_ref()) {
        spec["customNoUpgrade"] = json!(custom);
    } else if spec["featureSet"] == CUSTOM {
        // The release's program does not accept the set without its features.
        spec["customNoUpgrade"] = json!({});
    }
    super::kubeconfig::yaml(&json!({
        "apiVersion": "config.openshift.io/v1",
        "kind": "FeatureGate",
        "metadata": { "name": "cluster" },
        "spec": spec,
        "status": { "featureGates": null },
    }))
}

impl Features {
    /// Reads the rendered `FeatureGate`.
    pub(crate) fn of(context: &Context<'_>) -> Result<Self> {
        let missing = || Error::missing(format!("ConfigMap {CONFIG_MAP}"), format!("key {KEY}"));
        let text = context
            .objects
            .config_value(CONFIG_MAP, KEY)
            .ok_or_else(missing)?;
        let gate: Value = serde_saphyr::from_str(&text).map_err(|_| missing())?;
        let status = &gate["status"]["featureGates"][0];
        let listed = |field: &str, on: bool| {
            let names = status[field].as_array().into_iter().flatten();
            let names = names.filter_map(|feature| feature["name"].as_str());
            names.map(|name| (name.to_owned(), on)).collect::<Vec<_>>()
        };
        Ok(Self(
            [listed("enabled", true), listed("disabled", false)].concat(),
        ))
    }

    /// Whether a feature is enabled.
    pub(crate) fn is_on(&self, feature: &str) -> bool {
        self.0.iter().any(|(name, on)| name == feature && *on)
    }

    /// Formats them for a flag: `Name=true`.
    pub(crate) fn flags(&self) -> Vec<String> {
        let flags = self.0.iter();
        flags.map(|(name, on)| format!("{name}={on}")).collect()
    }
}
