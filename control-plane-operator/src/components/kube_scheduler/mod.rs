//! kube-scheduler: assigns the guest's pods to nodes.

mod config;

use control_plane_component::certificate::Usage::Client;
use control_plane_component::certificate::{CONTROL_PLANE, leaf, server};
use control_plane_component::names::service_and_localhost;
use control_plane_component::{Component, Context, Leaf, Prober, Result, Workload, assets};

use super::{edit, flags, kubeconfig};

/// The component's name.
const NAME: &str = "kube-scheduler";

pub(super) fn component() -> Component {
    Component::new(
        NAME,
        assets!(
            "config.yaml",
            "deployment.yaml",
            "kubeconfig.yaml",
            "service.yaml",
            "servicemonitor.yaml",
        ),
    )
    .with_certificates(certificates)
    .zone_spread()
    .prober(Prober::default())
    .manifest("config.yaml", config::adapt)
    .manifest(
        "kubeconfig.yaml",
        kubeconfig::service("kube-scheduler-client"),
    )
    .adapt(adapt)
}

fn certificates(context: &Context<'_>) -> Vec<Leaf> {
    let user = "system:kube-scheduler";
    vec![
        leaf(
            "kube-scheduler-client",
            CONTROL_PLANE,
            user,
            "kubernetes",
            Client,
        ),
        server("scheduler-server", NAME).names(service_and_localhost(context, NAME)),
    ]
}

fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    let scheduler = edit::container(edit::pod(workload), NAME)?;
    edit::args(scheduler, flags::tls(context));
    edit::args(scheduler, flags::profiling(context, NAME)?);
    edit::args(scheduler, flags::features(context)?);
    Ok(())
}
