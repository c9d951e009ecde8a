//! Flags that many programs of a control plane take alike.

use api::annotations::cluster::DISABLE_PROFILING;
use control_plane_component::{Context, Error, Result};

use super::feature_gate::Features;

/// Versions and ciphers of TLS.
pub(crate) fn tls(context: &Context<'_>) -> Vec<String> {
    let tls = context.tls();
    let version = format!("--tls-min-version={}", tls.version());
    let ciphers = tls.cipher_flag("--tls-cipher-suites");
    [version].into_iter().chain(ciphers).collect()
}

/// Features that are on and off, as the release made them.
pub(crate) fn features(context: &Context<'_>) -> Result<Vec<String>> {
    let features = Features::of(context)?.flags().into_iter();
    Ok(features
        .map(|feature| format!("--feature-gates={feature}"))
        .collect())
}

/// Turns profiling off, where an annotation asks for that.
pub(crate) fn profiling(context: &Context<'_>, component: &str) -> Result<Option<String>> {
    let silent = DISABLE_PROFILING
        .get(context.annotations())
        .map_err(|error| Error::Invalid {
            way_out: format!("write {}", error.expected),
            field: error.key,
            value: error.value,
        })?;
    let is_silent = silent.is_some_and(|names| names.iter().any(|name| name == component));
    Ok(is_silent.then(|| "--profiling=false".to_owned()))
}
