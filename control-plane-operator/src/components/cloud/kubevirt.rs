//! KubeVirt: access to another cluster that runs the virtual machines.

use api::hypershift::v1beta1::platform::kubevirt::KubevirtPlatformCredentials;
use control_plane_component::{Context, Result};
use k8s_openapi::api::core::v1::PodSpec;
use serde_json::json;

use super::super::edit;

/// Label of the cluster's resources in the cluster that runs the virtual machines.
pub(crate) const INFRA_ID: &str = "hypershift.openshift.io/infra-id";
/// Secret with the kubeconfig of that cluster.
const CREDENTIALS: &str = "kubevirt-infra-credentials";

/// Access to another cluster that runs the virtual machines.
pub(crate) fn external_infra<'a>(context: &Context<'a>) -> Option<&'a KubevirtPlatformCredentials> {
    let kubevirt = context.spec().platform.kubevirt.as_ref()?;
    let credentials = kubevirt.credentials.as_ref()?;
    let is_complete =
        credentials.infra_kube_config_secret.is_some() && !credentials.infra_namespace.is_empty();
    is_complete.then_some(credentials)
}

/// Mounts the kubeconfig of that cluster in a container.
pub(crate) fn mount_infra_kubeconfig(
    pod: &mut PodSpec,
    container: &str,
    (volume, path): (&str, &str),
) -> Result<()> {
    let container = edit::container(pod, container)?;
    let mounts = container.volume_mounts.get_or_insert_default();
    mounts.push(edit::from_json(
        json!({ "name": volume, "mountPath": path }),
    ));
    let volumes = pod.volumes.get_or_insert_default();
    volumes.push(edit::from_json(
        json!({ "name": volume, "secret": { "secretName": CREDENTIALS } }),
    ));
    Ok(())
}
