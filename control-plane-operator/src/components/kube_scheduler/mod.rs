//! kube-scheduler: puts the guest's pods on nodes.

mod config;

use super::{edit, flags, kubeconfig};
use crate::assets;
use crate::component::{Component, Context, Prober, Result, Workload};

/// The component's name.
const NAME: &str = "kube-scheduler";

pub(super) fn component() -> Component {
    Component::new(
        NAME,
        assets!("kube-scheduler":
            "config.yaml",
            "deployment.yaml",
            "kubeconfig.yaml",
            "service.yaml",
            "servicemonitor.yaml",
        ),
    )
    .zone_spread()
    .prober(Prober::default())
    .manifest("config.yaml", config::adapt)
    .manifest(
        "kubeconfig.yaml",
        kubeconfig::service("kube-scheduler-client"),
    )
    .adapt(adapt)
}

fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    let scheduler = edit::container(edit::pod(workload), NAME)?;
    edit::args(scheduler, flags::tls(context));
    edit::args(scheduler, flags::profiling(context, NAME)?);
    edit::args(scheduler, flags::features(context)?);
    Ok(())
}
