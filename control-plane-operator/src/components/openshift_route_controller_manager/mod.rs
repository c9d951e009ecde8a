//! openshift-route-controller-manager: Routes for Ingresses, and addresses of Services without a cloud.

use control_plane_component::{Component, Context, Metrics, Result, assets};
use k8s_openapi::api::core::v1::ConfigMap;

use super::{edit, openshift_controllers};

/// The component's name.
const NAME: &str = "openshift-route-controller-manager";
const METRICS: Metrics = Metrics {
    telemetry: Some(("drop", "(.*)")),
    sre: Some("openshiftRouteControllerManager"),
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
    .manifest("config.yaml", config)
    .manifest_if("service.yaml", edit::is_monitored)
    .manifest_if("servicemonitor.yaml", edit::is_monitored)
}

fn config(context: &Context<'_>, config_map: &mut ConfigMap) -> Result<()> {
    openshift_controllers::config(context, config_map, |config| {
        openshift_controllers::ingress_network(context, config);
        Ok(())
    })
}
