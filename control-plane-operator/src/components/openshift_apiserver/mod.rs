//! openshift-apiserver: the APIs of OpenShift that the guest's API server aggregates, such as Routes, builds and images.

mod config;
mod deployment;

use control_plane_component::certificate::server;
use control_plane_component::names::service_and_guest;
use control_plane_component::{
    Component, Context, Konnectivity, Leaf, Metrics, Prober, Publication, assets,
};

use super::{audit, edit, etcd_client, observed, readiness};
use crate::infra::services::Service;

/// The component's name.
const NAME: &str = "openshift-apiserver";
const METRICS: Metrics = Metrics {
    telemetry: Some((
        "keep",
        "(apiserver_storage_objects|apiserver_request_total|apiserver_current_inflight_requests)",
    )),
    sre: Some("openshiftAPIServer"),
};

pub(super) fn component() -> Component {
    Component::new(
        NAME,
        assets!(
            "audit-config.yaml",
            "config.yaml",
            "deployment.yaml",
            "pdb.yaml",
            "servicemonitor.yaml",
        ),
    )
    .with_certificates(certificates)
    .published_by(Publication {
        services: &[NAME],
        objects: |_| vec![Service::internal(NAME, 8443).object()],
        ..Publication::NONE
    })
    .metrics(METRICS)
    .api_critical()
    .zone_spread()
    .prober(Prober::default())
    // It imports images, also from registries that only the guest's network reaches.
    .konnectivity(Konnectivity {
        https: Some(&[]),
        ..Konnectivity::default()
    })
    .manifest("audit-config.yaml", audit::adapt)
    .manifest("config.yaml", config::adapt)
    .manifest("pdb.yaml", edit::disruption_budget)
    .adapt(deployment::adapt)
}

fn certificates(context: &Context<'_>) -> Vec<Leaf> {
    let names = service_and_guest(context, NAME);
    vec![server(&format!("{NAME}-cert"), NAME).names(names)]
}
