//! cluster-version-operator: applies the release payload in the guest.

mod payload;
mod version;

use control_plane_component::certificate::server;
use control_plane_component::names::service_and_localhost;
use control_plane_component::{
    Component, Context, Leaf, Metrics, Prober, Result, Workload, assets,
};

use super::{edit, flags};

/// The component's name.
const NAME: &str = "cluster-version-operator";
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
        assets!("deployment.yaml", "service.yaml", "servicemonitor.yaml",),
    )
    .with_certificates(certificates)
    .metrics(METRICS)
    .depends_on(&["openshift-apiserver"])
    .prober(Prober {
        kubeconfig_volume: Some("kubeconfig"),
        ..Prober::default()
    })
    .manifest_if("service.yaml", edit::is_monitored)
    .manifest_if("servicemonitor.yaml", edit::is_monitored)
    .adapt(adapt)
}

fn certificates(context: &Context<'_>) -> Vec<Leaf> {
    vec![server("cvo-server", NAME).names(service_and_localhost(context, NAME))]
}

fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    let release = &context.spec().release_image;
    let pod = edit::pod(workload);
    let prepare = edit::container(pod, "prepare-payload")?;
    prepare.image = Some(release.clone());
    edit::args(prepare, ["-c".to_owned(), payload::script(context)]);
    let bootstrap = edit::container(pod, "bootstrap")?;
    let version = version::cluster_version(context).to_string();
    edit::env(bootstrap, "CLUSTER_VERSION_JSON", version);
    let operator = edit::container(pod, NAME)?;
    edit::env(operator, "RELEASE_IMAGE", release);
    edit::args(operator, flags::tls(context));
    Ok(())
}
