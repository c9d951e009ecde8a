//! csi-snapshot-controller-operator: runs the controller of the guest's volume snapshots.

use control_plane_component::certificate::server;
use control_plane_component::{
    Component, Context, Leaf, Operand, Operands, Prober, Result, Workload, assets,
};

use super::cluster_storage_operator::is_storage_managed;
use super::{controller_config, edit};

/// The component's name.
const NAME: &str = "csi-snapshot-controller-operator";
/// Image of the controller.
const CONTROLLER: &str = "csi-snapshot-controller";

pub(super) fn component() -> Component {
    Component::new(
        NAME,
        assets!(
            "config.yaml",
            "deployment.yaml",
            "role.yaml",
            "rolebinding.yaml",
            "serviceaccount.yaml",
        ),
    )
    .with_certificates(certificates)
    .management_api()
    .depends_on(&["openshift-apiserver"])
    .enabled_if(is_storage_managed)
    .prober(Prober {
        kubeconfig_volume: Some("guest-kubeconfig"),
        required_apis: &[("operator.openshift.io", "v1", "CSISnapshotController")],
        ..Prober::default()
    })
    .operands(Operands::Named(|_| {
        vec![Operand::new(CONTROLLER, CONTROLLER).container("snapshot-controller")]
    }))
    .manifest("config.yaml", controller_config::adapt)
    .adapt(adapt)
}

fn certificates(_: &Context<'_>) -> Vec<Leaf> {
    let serving = server("csi-snapshot-controller-operator-serving-cert", NAME);
    vec![serving.names([NAME, "localhost"].map(str::to_owned))]
}

fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    let operator = edit::container(edit::pod(workload), NAME)?;
    let version = &context.user_release.version;
    edit::env(operator, "OPERATOR_IMAGE_VERSION", version);
    edit::env(operator, "OPERAND_IMAGE_VERSION", version);
    edit::run_as_user(context, operator);
    edit::images(operator, context.release, &[("OPERAND_IMAGE", CONTROLLER)])
}
