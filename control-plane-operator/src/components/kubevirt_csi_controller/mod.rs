//! kubevirt-csi-controller: volumes of the guest from storage of the cluster that runs its virtual machines.

mod storage_classes;

use api::hypershift::v1beta1::platform::PlatformType;
use api::hypershift::v1beta1::platform::kubevirt::{
    KubevirtStorageDriverSpec, KubevirtStorageDriverType,
};
use control_plane_component::declaration::ServiceAccountKubeconfig;
use control_plane_component::{Component, Context, Result, Workload, assets};
use k8s_openapi::api::core::v1::ConfigMap;

use super::cloud::kubevirt::{INFRA_ID, external_infra, mount_infra_kubeconfig};
use super::{cloud, edit, kubeconfig};

/// The container of the driver.
const DRIVER: &str = "csi-driver";

pub(super) fn component() -> Component {
    Component::new(
        "kubevirt-csi-controller",
        assets!(
            "config.yaml",
            "deployment.yaml",
            "role.yaml",
            "rolebinding.yaml",
            "serviceaccount.yaml",
        ),
    )
    .management_api()
    .enabled_if(is_enabled)
    .service_account_kubeconfig(ServiceAccountKubeconfig {
        namespace: "openshift-cluster-csi-drivers",
        name: "kubevirt-csi-controller-sa",
        mount_path: "/var/run/secrets/tenantcluster",
        containers: &[],
    })
    .manifest("config.yaml", config)
    .adapt(adapt)
}

fn is_enabled(context: &Context<'_>) -> bool {
    let driver = storage_driver(context);
    let is_off = driver.is_some_and(|driver| driver.type_ == KubevirtStorageDriverType::None);
    context.is_on(PlatformType::KubeVirt) && !is_off
}

fn storage_driver<'a>(context: &Context<'a>) -> Option<&'a KubevirtStorageDriverSpec> {
    let kubevirt = context.spec().platform.kubevirt.as_ref();
    kubevirt.and_then(|kubevirt| kubevirt.storage_driver.as_ref())
}

fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    if external_infra(context).is_none() {
        return Ok(());
    }
    let path = "/var/run/secrets/infracluster";
    let pod = edit::pod(workload);
    let flag = format!("--infra-cluster-kubeconfig={path}/kubeconfig");
    edit::args(edit::container(pod, DRIVER)?, [flag]);
    mount_infra_kubeconfig(pod, DRIVER, ("infracluster", path))
}

fn config(context: &Context<'_>, config_map: &mut ConfigMap) -> Result<()> {
    let external = external_infra(context);
    let namespace = external.map_or(context.namespace(), |credentials| {
        credentials.infra_namespace.as_str()
    });
    let infra_id = cloud::label_value(cloud::INFRA_ID, &context.spec().infra_id)?;
    let enforcement = storage_classes::enforcement(storage_driver(context));
    for (key, value) in [
        ("infraClusterNamespace", namespace.to_owned()),
        ("infraClusterLabels", format!("{INFRA_ID}={infra_id}")),
        (
            "infraStorageClassEnforcement",
            kubeconfig::yaml(&enforcement),
        ),
    ] {
        cloud::put(config_map, key, value);
    }
    Ok(())
}
