//! kube-scheduler: assigns the guest's pods to nodes.

mod config;

use control_plane_component::certificate::Usage::Client;
use control_plane_component::certificate::{CONTROL_PLANE, leaf, server};
use control_plane_component::names::service_and_localhost;
use control_plane_component::{
    Component, Context, Error, Leaf, Metrics, Prober, Result, Workload, assets,
};

use super::{edit, flags, kubeconfig};

/// The component's name.
const NAME: &str = "kube-scheduler";
/// Telemetry collects none.
const METRICS: Metrics = Metrics {
    telemetry: Some(("drop", ".*")),
    sre: Some("kubeScheduler"),
};

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
    .metrics(METRICS)
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

/// Current schedulers have no flags for policies, and do not start with them.
fn reject_policy(context: &Context<'_>) -> Result<()> {
    let configuration = context.spec().configuration.as_ref();
    let scheduler = configuration.and_then(|it| it.scheduler.as_ref());
    let policy = scheduler.and_then(|scheduler| scheduler.policy.as_ref());
    match policy.filter(|policy| !policy.name.is_empty()) {
        None => Ok(()),
        Some(policy) => Err(Error::Invalid {
            field: "spec.configuration.scheduler.policy".to_owned(),
            value: policy.name.clone(),
            hint: "kube-scheduler has no policies; remove it, and select a profile".to_owned(),
        }),
    }
}

fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    reject_policy(context)?;
    let scheduler = edit::container(edit::pod(workload), NAME)?;
    edit::args(scheduler, flags::tls(context));
    edit::args(scheduler, flags::profiling(context, NAME)?);
    edit::args(scheduler, flags::features(context)?);
    Ok(())
}
