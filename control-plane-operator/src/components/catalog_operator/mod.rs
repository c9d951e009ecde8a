//! catalog-operator: resolves Subscriptions of the guest from its catalogs.

use control_plane_component::certificate::server;
use control_plane_component::names::service;
use control_plane_component::{Component, Context, Leaf, Metrics, Result, Workload, assets};

use super::{edit, olm};

/// The component's name.
const NAME: &str = "catalog-operator";
/// Name of its Service for metrics.
const SERVICE: &str = "catalog-operator-metrics";
const METRICS: Metrics = Metrics {
    telemetry: Some((
        "keep",
        "(subscription_sync_total|olm_resolution_duration_seconds)",
    )),
    sre: Some("catalogOperator"),
};

pub(super) fn component() -> Component {
    let component = Component::new(
        NAME,
        assets!("deployment.yaml", "service.yaml", "servicemonitor.yaml",),
    );
    olm::common(component, &[olm::CATALOG_SOURCE])
        .with_certificates(certificates)
        .metrics(METRICS)
        .manifest_if("service.yaml", olm::is_monitored)
        .manifest_if("servicemonitor.yaml", olm::is_monitored)
        .adapt(adapt)
}

fn certificates(context: &Context<'_>) -> Vec<Leaf> {
    vec![server("catalog-operator-serving-cert", SERVICE).names(service(context, SERVICE))]
}

fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    let operator = edit::container(edit::pod(workload), NAME)?;
    olm::environment(context, operator);
    // The images of the pods that it runs in the guest.
    for (variable, image) in [
        ("OLM_OPERATOR_IMAGE", "operator-lifecycle-manager"),
        ("OPERATOR_REGISTRY_IMAGE", "operator-registry"),
    ] {
        edit::env(operator, variable, context.release.image(image)?);
    }
    Ok(())
}
