//! ignition-server-proxy: serves the certificate that machines trust, and forwards to the ignition server.

use api::hypershift::v1beta1::platform::PlatformType;
use control_plane_component::{Component, Context, assets};

use super::ignition_server;

pub(super) fn component() -> Component {
    Component::new(
        "ignition-server-proxy",
        assets!("deployment.yaml", "service.yaml",),
    )
    .independent()
    .request_serving()
    .zone_spread()
    .depends_on(&["ignition-server"])
    .enabled_if(is_enabled)
    .manifest("service.yaml", ignition_server::publish)
}

fn is_enabled(context: &Context<'_>) -> bool {
    ignition_server::is_enabled(context) && !context.is_on(PlatformType::IbmCloud)
}
