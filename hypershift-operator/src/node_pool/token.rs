//! Tokens that machines show: new ones, and when old ones go.

use api::annotations::node_pool::TOKEN_EXPIRATION;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;

/// A random token.
pub(crate) fn fresh() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// When tokens of older configurations go.
pub(crate) fn expiries(tokens: &[Secret]) -> impl Iterator<Item = Timestamp> {
    tokens.iter().filter_map(|secret| {
        let annotations = secret.metadata.annotations.as_ref()?;
        annotations.get(TOKEN_EXPIRATION.key())?.parse().ok()
    })
}
