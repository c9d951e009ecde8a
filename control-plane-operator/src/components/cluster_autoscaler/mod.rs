//! cluster-autoscaler: adds nodes for pending pods, and removes unneeded nodes.

mod options;

use control_plane_component::{
    CapiUse, Component, Context, Error, Prober, Result, Workload, assets,
};

use super::{capi, edit};

/// The component's name.
const NAME: &str = "cluster-autoscaler";
/// Annotation: overrides the image.
const IMAGE: &str = "hypershift.openshift.io/cluster-autoscaler-image";
/// Annotation of a hosted control plane without pools that are scaled.
const DISABLE: &str = "hypershift.openshift.io/disable-cluster-autoscaler";

pub(super) fn component() -> Component {
    Component::new(
        NAME,
        assets!(
            "deployment.yaml",
            "podmonitor.yaml",
            "role.yaml",
            "rolebinding.yaml",
            "serviceaccount.yaml",
        ),
    )
    .management_api()
    .uses_capi(CapiUse::Proxied)
    .enabled_if(capi::manages_machines)
    .prober(Prober::default())
    .manifest("role.yaml", capi::role)
    .adapt(adapt)
}

fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    if context.annotation(DISABLE).is_some()
        && let Some(replicas) = workload.replicas()
    {
        *replicas = Some(0);
    }
    let pod = edit::pod(workload);
    let autoscaler = edit::container(pod, NAME)?;
    edit::image_by(context, autoscaler, IMAGE);
    let requested = context.spec().autoscaling.as_ref();
    edit::args(autoscaler, options::flags(requested, context.platform()));
    let management = capi::management_kubeconfig(context, "--cloud-config");
    edit::args(autoscaler, management);
    let mut volumes = pod.volumes.iter_mut().flatten();
    let kubeconfig = volumes.find_map(|volume| volume.secret.as_mut());
    let kubeconfig =
        kubeconfig.ok_or_else(|| Error::missing("volume kubeconfig", "in the manifest"))?;
    kubeconfig.secret_name = Some(format!("{}-kubeconfig", context.spec().infra_id));
    Ok(())
}
