//! ignition-server-proxy: serves the certificate that machines trust, and forwards to the ignition server.

use api::hypershift::v1beta1::platform::PlatformType;
use control_plane_component::{Component, Context, Result, Workload, assets};

use super::{edit, ignition_server};

/// The container that terminates TLS.
const SERVER: &str = "haproxy";

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
    .adapt(adapt)
}

fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    let pod = edit::pod(workload);
    let server = edit::container(pod, SERVER)?;
    context.settings.proxy.set_env(server, []);
    edit::mount_trust_bundle(context, pod, SERVER)
}

fn is_enabled(context: &Context<'_>) -> bool {
    ignition_server::is_enabled(context) && !context.is_on(PlatformType::IbmCloud)
}
