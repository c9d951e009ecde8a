//! cluster-version-operator: applies the release payload in the guest.

mod metrics;
mod payload;
mod version;

use api::annotations::cluster::CLEANUP_CLOUD_RESOURCES;
use control_plane_component::certificate::server;
use control_plane_component::names::service_and_localhost;
use control_plane_component::{
    Component, Context, Leaf, Metrics, Prober, Result, Workload, assets,
};

use super::{edit, flags};

/// The component's name.
pub(crate) const NAME: &str = "cluster-version-operator";
const METRICS: Metrics = Metrics {
    telemetry: Some((
        "keep",
        "(cluster_version|cluster_version_available_updates|cluster_operator_up|cluster_operator_conditions\
         |cluster_version_payload|cluster_installer)",
    )),
    sre: Some("cvo"),
};

pub(super) fn component() -> Component {
    Component::new(
        NAME,
        assets!(
            "deployment.yaml",
            "role.yaml",
            "rolebinding.yaml",
            "service.yaml",
            "serviceaccount.yaml",
            "servicemonitor.yaml",
        ),
    )
    .with_certificates(certificates)
    .metrics(METRICS)
    .depends_on(&["openshift-apiserver"])
    .prober(Prober {
        kubeconfig_volume: Some("kubeconfig"),
        ..Prober::default()
    })
    .manifest_if("role.yaml", metrics::are_read)
    .manifest_if("rolebinding.yaml", metrics::are_read)
    .manifest_if("service.yaml", edit::is_monitored)
    .manifest_if("serviceaccount.yaml", metrics::are_read)
    .manifest_if("servicemonitor.yaml", edit::is_monitored)
    .adapt(adapt)
}

/// Whether it is stopped, because the cluster is being deleted, and what it would bring back is cleaned up.
pub(crate) fn is_stopped(context: &Context<'_>) -> bool {
    context.hcp.metadata.deletion_timestamp.is_some()
        && CLEANUP_CLOUD_RESOURCES.is_true(context.annotations())
}

fn certificates(context: &Context<'_>) -> Vec<Leaf> {
    vec![server("cvo-server", NAME).names(service_and_localhost(context, NAME))]
}

fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    if is_stopped(context)
        && let Some(replicas) = workload.replicas()
    {
        *replicas = Some(0);
    }
    let pod = edit::pod(workload);
    let prepare = edit::container(pod, "prepare-payload")?;
    prepare.image = Some(context.release.pinned());
    edit::args(prepare, ["-c".to_owned(), payload::script(context)]);
    let bootstrap = edit::container(pod, "bootstrap")?;
    let version = version::cluster_version(context).to_string();
    edit::env(bootstrap, "CLUSTER_VERSION_JSON", version);
    let operator = edit::container(pod, NAME)?;
    edit::env(operator, "RELEASE_IMAGE", context.user_release.pinned());
    edit::args(operator, flags::tls(context));
    let service = context.spec().update_service.as_deref();
    let service = service.filter(|url| !url.is_empty());
    let service = service.map(|url| format!("--update-service={url}"));
    edit::args(operator, service);
    metrics::adapt(context, workload)
}
