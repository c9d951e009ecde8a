//! router: serves all Routes of a control plane, and selects the backend by SNI.

mod config;
mod publishing;

use control_plane_component::{Component, assets};

use super::edit;

pub(super) fn component() -> Component {
    Component::new(
        "router",
        assets!("config.yaml", "deployment.yaml", "pdb.yaml"),
    )
    .api_critical()
    .independent()
    .published_by(publishing::PUBLICATION)
    .request_serving()
    .zone_spread()
    .depends_on(&["ignition-server"])
    .enabled_if(|context| context.infra.needs_router)
    .manifest("config.yaml", config::adapt)
    .manifest("pdb.yaml", edit::disruption_budget)
}
