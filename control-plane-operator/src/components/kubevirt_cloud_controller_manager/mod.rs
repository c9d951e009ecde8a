//! kubevirt-cloud-controller-manager: nodes and load balancers on KubeVirt.

use api::group::CLUSTER_NAME;
use api::hypershift::v1beta1::platform::PlatformType;
use control_plane_component::{Component, Context, Error, Result, Workload, assets};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use super::cloud::kubevirt::{INFRA_ID, mount_infra_kubeconfig};
use super::{cloud, edit, flags, kubeconfig};

/// Volume and mount path of the kubeconfig of another cluster that runs the virtual machines.
const INFRA_KUBECONFIG: (&str, &str) = ("infra-kubeconfig", "/etc/kubernetes/infra-kubeconfig");

pub(super) fn component() -> Component {
    Component::new(
        "kubevirt-cloud-controller-manager",
        assets!(
            "config.yaml",
            "deployment.yaml",
            "role.yaml",
            "rolebinding.yaml",
            "serviceaccount.yaml",
        ),
    )
    .zone_spread()
    .management_api()
    .enabled_if(|context| context.is_on(PlatformType::KubeVirt))
    .manifest("config.yaml", config)
    .adapt(adapt)
}

/// Whether virtual machines run in another cluster than this one.
fn is_infra_external(context: &Context<'_>) -> bool {
    let kubevirt = context.spec().platform.kubevirt.as_ref();
    kubevirt.is_some_and(|kubevirt| kubevirt.credentials.is_some())
}

fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    let labels = context.hcp.metadata.labels.as_ref();
    let name = labels.and_then(|labels| labels.get(CLUSTER_NAME));
    let name =
        name.ok_or_else(|| Error::missing("HostedControlPlane", format!("label {CLUSTER_NAME}")))?;
    let pod = edit::pod(workload);
    let manager = edit::container(pod, cloud::MANAGER)?;
    edit::args(manager, [format!("--cluster-name={name}")]);
    edit::args(manager, flags::tls(context));
    if is_infra_external(context) {
        mount_infra_kubeconfig(pod, cloud::MANAGER, INFRA_KUBECONFIG)?;
    }
    Ok(())
}

#[expect(clippy::unnecessary_wraps, reason = "the form of adapt functions")]
fn config(context: &Context<'_>, config_map: &mut ConfigMap) -> Result<()> {
    let kubevirt = context.spec().platform.kubevirt.as_ref();
    let credentials = kubevirt.and_then(|kubevirt| kubevirt.credentials.as_ref());
    let namespace = credentials.map(|credentials| credentials.infra_namespace.as_str());
    let namespace = namespace.filter(|namespace| !namespace.is_empty());
    let (_, path) = INFRA_KUBECONFIG;
    let kubeconfig = credentials.map(|_| format!("{path}/kubeconfig"));
    // A serializer writes the YAML, so that no value can add settings.
    let config = kubeconfig::yaml(&json!({
        "kubeconfig": kubeconfig.unwrap_or_default(),
        "loadBalancer": { "enabled": true, "creationPollInterval": 0, "selectorless": true },
        "instancesV2": { "enabled": true, "zoneAndRegionEnabled": false },
        "namespace": namespace.unwrap_or_else(|| context.namespace()),
        "infraLabels": { INFRA_ID: context.spec().infra_id },
    }));
    cloud::put(config_map, "cloud-config", config);
    Ok(())
}
