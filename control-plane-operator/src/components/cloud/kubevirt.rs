//! KubeVirt: access to another cluster that runs the virtual machines.

use control_plane_component::Result;
use k8s_openapi::api::core::v1::PodSpec;
use serde_json::json;

use super::super::edit;

/// Label of the cluster's resources in the cluster that runs the virtual machines.
pub(crate) const INFRA_ID: &str = "hypershift.openshift.io/infra-id";
/// Secret with the kubeconfig of that cluster.
const CREDENTIALS: &str = "kubevirt-infra-credentials";

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
