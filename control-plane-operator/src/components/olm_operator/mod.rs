//! olm-operator: installs operators in the guest.

use control_plane_component::certificate::server;
use control_plane_component::names::service;
use control_plane_component::{Component, Context, Leaf, Metrics, Result, Workload, assets};

use super::{edit, olm};

/// The component's name.
const NAME: &str = "olm-operator";
/// Name of its Service for metrics.
const SERVICE: &str = "olm-operator-metrics";
const METRICS: Metrics = Metrics {
    telemetry: Some(("keep", "(csv_succeeded|csv_abnormal)")),
    sre: Some("olm"),
};

pub(super) fn component() -> Component {
    let component = Component::new(
        NAME,
        assets!("deployment.yaml", "service.yaml", "servicemonitor.yaml",),
    );
    olm::common(component, &olm::OPERATOR_TYPES)
        .with_certificates(certificates)
        .metrics(METRICS)
        .manifest_if("service.yaml", olm::is_monitored)
        .manifest_if("servicemonitor.yaml", olm::is_monitored)
        .adapt(adapt)
}

fn certificates(context: &Context<'_>) -> Vec<Leaf> {
    vec![server("olm-operator-serving-cert", SERVICE).names(service(context, SERVICE))]
}

fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    let operator = edit::container(edit::pod(workload), NAME)?;
    olm::environment(context, operator);
    Ok(())
}
