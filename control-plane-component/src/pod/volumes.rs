//! Volumes of all pods, and file modes.

use k8s_openapi::api::core::v1::PodSpec;

use super::{CONFIG_MODE, Component, SECRET_MODE, add_volume, empty_volume, mount, secret_volume};

const TEMPORARY: &str = "tmp-dir";
const TEMPORARY_PATH: &str = "/tmp";
pub(super) const SERVICE_ACCOUNT_KUBECONFIG: &str = "service-account-kubeconfig";

/// Sets the default file modes.
pub(super) fn modes(pod: &mut PodSpec) {
    for volume in pod.volumes.iter_mut().flatten() {
        if let Some(source) = &mut volume.config_map {
            source.default_mode.get_or_insert(CONFIG_MODE);
        }
        if let Some(source) = &mut volume.secret {
            source.default_mode.get_or_insert(SECRET_MODE);
        }
    }
}

/// Mounts the kubeconfig for the component's service account in the guest.
pub(super) fn service_account_kubeconfig(component: &Component, pod: &mut PodSpec) {
    let Some(kubeconfig) = &component.service_account else {
        return;
    };
    let secret = component.service_account_secret();
    add_volume(pod, secret_volume(SERVICE_ACCOUNT_KUBECONFIG, &secret));
    for container in &mut pod.containers {
        let named = kubeconfig
            .containers
            .iter()
            .any(|name| *name == container.name);
        if named || kubeconfig.containers.is_empty() {
            let mounts = container.volume_mounts.get_or_insert_default();
            mounts.push(mount(SERVICE_ACCOUNT_KUBECONFIG, kubeconfig.mount_path));
        }
    }
}

/// Mounts `/tmp` in each container, because root file systems are read-only.
pub(super) fn temporary(pod: &mut PodSpec) {
    add_volume(pod, empty_volume(TEMPORARY, None));
    for container in &mut pod.containers {
        let mounts = container.volume_mounts.get_or_insert_default();
        if mounts
            .iter()
            .all(|mount| mount.mount_path != TEMPORARY_PATH)
        {
            mounts.push(mount(TEMPORARY, TEMPORARY_PATH));
        }
    }
}
