//! openshift-controller-manager: builds, deployment configurations, and pull secrets for the image registry.

mod builds;
mod config;

use control_plane_component::{Component, Metrics, assets};

use super::{edit, observed, openshift_controllers};

/// The component's name.
const NAME: &str = "openshift-controller-manager";
const METRICS: Metrics = Metrics {
    telemetry: Some(("keep", "openshift_build_status_phase_total")),
    sre: Some("openshiftControllerManager"),
};

pub(super) fn component() -> Component {
    Component::new(
        NAME,
        assets!(
            "config.yaml",
            "deployment.yaml",
            "service.yaml",
            "servicemonitor.yaml",
        ),
    )
    .with_certificates(|context| openshift_controllers::certificate(context, NAME))
    .metrics(METRICS)
    .zone_spread()
    .depends_on(&["openshift-apiserver"])
    .manifest("config.yaml", config::adapt)
    .manifest_if("service.yaml", edit::is_monitored)
    .manifest_if("servicemonitor.yaml", edit::is_monitored)
}
