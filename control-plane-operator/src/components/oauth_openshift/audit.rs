//! The audit log of the OAuth server. Its policy is fixed; the profile of the API server only turns it off.

use api::hypershift::v1beta1::configuration::api_server::AuditProfile;
use control_plane_component::{Context, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

/// The profile of the API server's audit log.
fn profile(context: &Context<'_>) -> AuditProfile {
    let configuration = context.spec().configuration.as_ref();
    let server = configuration.and_then(|configuration| configuration.api_server.as_ref());
    server
        .map(|server| server.audit.profile)
        .unwrap_or_default()
}

/// Whether the log is printed.
pub(super) fn is_on(context: &Context<'_>) -> bool {
    profile(context) != AuditProfile::None
}

#[expect(clippy::unnecessary_wraps, reason = "the form of adapt functions")]
pub(super) fn adapt(context: &Context<'_>, config_map: &mut ConfigMap) -> Result<()> {
    let profile = json!(profile(context));
    let profile = profile.as_str().unwrap_or_default().to_owned();
    let data = config_map.data.get_or_insert_default();
    data.insert("profile".to_owned(), profile);
    Ok(())
}
