//! router: one way in for all Routes of a control plane, by the name that a client asks for.

mod config;

use super::edit;
use crate::assets;
use crate::component::Component;

pub(super) fn component() -> Component {
    Component::new(
        "router",
        assets!("router": "config.yaml", "deployment.yaml", "pdb.yaml"),
    )
    .request_serving()
    .zone_spread()
    .depends_on(&["ignition-server"])
    .wanted_if(|context| context.infra.needs_router)
    .manifest("config.yaml", config::adapt)
    .manifest("pdb.yaml", edit::disruption_budget)
}
