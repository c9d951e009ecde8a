//! ignition-server-proxy: shows machines the certificate that they know, and passes on to the ignition server.

use api::hypershift::v1beta1::platform::PlatformType;

use super::ignition_server;
use crate::assets;
use crate::component::{Component, Context};

pub(super) fn component() -> Component {
    Component::new(
        "ignition-server-proxy",
        assets!("ignition-server-proxy":
            "deployment.yaml",
            "service.yaml",
        ),
    )
    .request_serving()
    .zone_spread()
    .depends_on(&["ignition-server"])
    .wanted_if(is_wanted)
    .manifest("service.yaml", ignition_server::publish)
}

fn is_wanted(context: &Context<'_>) -> bool {
    ignition_server::is_wanted(context) && !context.is_on(PlatformType::IbmCloud)
}
