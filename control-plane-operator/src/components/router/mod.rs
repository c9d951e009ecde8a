//! router: serves all Routes of a control plane, and selects the backend by SNI.

mod config;
mod publishing;

use control_plane_component::{Component, Context, Result, Workload, assets};

use super::edit;

/// Pod label: the Swift network instance.
const POD_NETWORK: &str = "kubernetes.azure.com/pod-network-instance";

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
    .adapt(adapt)
}

/// Attaches the pods to the network of the nodes.
#[expect(clippy::unnecessary_wraps, reason = "the form of adapt functions")]
fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    if let Some(instance) = context.swift_instance() {
        let metadata = workload.template().metadata.get_or_insert_default();
        let labels = metadata.labels.get_or_insert_default();
        labels.insert(POD_NETWORK.to_owned(), instance.to_owned());
    }
    Ok(())
}
