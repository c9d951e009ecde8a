//! Flags that several components share.

use api::annotations::cluster::DISABLE_PROFILING;
use control_plane_component::{Context, Error, Result};

use super::feature_gate::Features;

/// TLS version and ciphers.
pub(crate) fn tls(context: &Context<'_>) -> Vec<String> {
    context.tls().flags()
}

/// Feature gates, as rendered by the release.
pub(crate) fn features(context: &Context<'_>) -> Result<Vec<String>> {
    let features = Features::of(context)?.flags().into_iter();
    Ok(features
        .map(|feature| format!("--feature-gates={feature}"))
        .collect())
}

/// Disables profiling if an annotation requests it.
pub(crate) fn profiling(context: &Context<'_>, component: &str) -> Result<Option<String>> {
    let disabled = DISABLE_PROFILING
        .get(context.annotations())
        .map_err(|error| Error::Invalid {
            hint: format!("write {}", error.expected),
            field: error.key,
            value: error.value,
        })?;
    let is_disabled = disabled.is_some_and(|names| names.iter().any(|name| name == component));
    Ok(is_disabled.then(|| "--profiling=false".to_owned()))
}
