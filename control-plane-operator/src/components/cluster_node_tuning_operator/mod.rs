//! cluster-node-tuning-operator: tunes the guest's nodes by profiles.

use api::hypershift::v1beta1::capabilities::OptionalCapability::NodeTuning;
use control_plane_component::certificate::server;
use control_plane_component::names::service;
use control_plane_component::{Component, Context, Leaf, Metrics, Result, Workload, assets};

use super::edit;

/// The component's name, and that of its image, which also runs on nodes.
const NAME: &str = "cluster-node-tuning-operator";
/// Its Service.
const SERVICE: &str = "node-tuning-operator";
const METRICS: Metrics = Metrics {
    telemetry: Some(("keep", "nto_profile_calculated_total")),
    sre: Some("nodeTuningOperator"),
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
    .management_api()
    .depends_on(&["openshift-apiserver"])
    .enabled_if(|context| context.has_capability(NodeTuning))
    .adapt(adapt)
}

fn certificates(context: &Context<'_>) -> Vec<Leaf> {
    let serving = server("node-tuning-operator-tls", SERVICE);
    vec![serving.names(service(context, SERVICE))]
}

fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    let operator = edit::container(edit::pod(workload), NAME)?;
    let release = context.user_release;
    edit::env(operator, "RELEASE_VERSION", &release.version);
    edit::images(operator, release, &[("CLUSTER_NODE_TUNED_IMAGE", NAME)])
}
