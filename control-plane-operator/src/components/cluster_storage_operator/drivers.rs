//! Storage drivers: their images, what the operator creates of them in the control plane, and certificates of it.

use api::hypershift::v1beta1::platform::PlatformType;
use control_plane_component::certificate::Usage::Both;
use control_plane_component::certificate::{ROOT, leaf};
use control_plane_component::names::service_and_localhost;
use control_plane_component::{Context, Leaf, Operand};
use k8s_openapi::api::core::v1::Container;

/// End of the names of variables with images.
const IMAGE: &str = "_IMAGE";
/// Variables with images that run in the guest, in addition to those of drivers.
const GUEST: [&str; 4] = [
    "CLUSTER_CLOUD_CONTROLLER_MANAGER_OPERATOR_IMAGE",
    "KUBE_RBAC_PROXY_IMAGE",
    "LIVENESS_PROBE_IMAGE",
    "NODE_DRIVER_REGISTRAR_IMAGE",
];
/// End of the names of variables with drivers, which run in the guest.
const DRIVER: &str = "_DRIVER_IMAGE";

const EBS: Driver = Driver {
    name: "aws-ebs-csi-driver",
    operator: "aws-ebs-csi-driver-operator",
    controller: "aws-ebs-csi-driver-controller",
    operator_service: "aws-ebs-csi-driver-operator-metrics",
    controller_service: "aws-ebs-csi-driver-controller-metrics",
};
const DISK: Driver = Driver {
    name: "azure-disk-csi-driver",
    operator: "azure-disk-csi-driver-operator",
    controller: "azure-disk-csi-driver-controller",
    operator_service: "azure-disk-csi-driver-operator",
    controller_service: "azure-disk-csi-driver-controller",
};
const FILE: Driver = Driver {
    name: "azure-file-csi-driver",
    operator: "azure-file-csi-driver-operator",
    controller: "azure-file-csi-driver-controller",
    operator_service: "azure-file-csi-driver-operator",
    controller_service: "azure-file-csi-driver-controller",
};

/// A driver with an operator and a controller in the control plane.
#[derive(Debug, Clone, Copy)]
struct Driver {
    /// Its name, and the release's name of its image.
    name: &'static str,
    /// The Deployment of its operator, and the release's name of that image.
    operator: &'static str,
    /// The Deployment of its controller.
    controller: &'static str,
    /// The Service with the operator's metrics.
    operator_service: &'static str,
    /// The Service with the controller's metrics.
    controller_service: &'static str,
}

/// Replaces the release's names of images. Not every release has the drivers of all platforms: without a value, the
/// operator cannot start a driver from a registry that the name is not meant for.
pub(super) fn images(context: &Context<'_>, operator: &mut Container) {
    let variables = operator.env.get_or_insert_default();
    variables.retain_mut(|variable| {
        if !variable.name.ends_with(IMAGE) {
            return true;
        }
        let in_guest = variable.name.ends_with(DRIVER) || GUEST.contains(&variable.name.as_str());
        let release = if in_guest {
            context.user_release
        } else {
            context.release
        };
        let name = variable.value.as_deref().unwrap_or_default();
        variable.value = release.image(name).ok();
        variable.value.is_some()
    });
}

/// The drivers of the platform.
fn drivers(context: &Context<'_>) -> &'static [Driver] {
    match context.platform() {
        PlatformType::Aws => &[EBS],
        PlatformType::Azure => &[DISK, FILE],
        PlatformType::Gcp
        | PlatformType::IbmCloud
        | PlatformType::KubeVirt
        | PlatformType::Agent
        | PlatformType::OpenStack
        | PlatformType::PowerVs
        | PlatformType::None => &[],
    }
}

/// The Deployments of the drivers.
pub(super) fn operands(context: &Context<'_>) -> Vec<Operand> {
    let drivers = drivers(context).iter();
    let operands = drivers.flat_map(|driver| {
        [
            Operand::new(driver.operator, driver.operator),
            Operand::new(driver.controller, driver.name).container("csi-driver"),
        ]
    });
    operands.collect()
}

/// Serving certificates for metrics of the drivers.
pub(super) fn certificates(context: &Context<'_>) -> Vec<Leaf> {
    let drivers = drivers(context).iter();
    let all = drivers.flat_map(|driver| {
        [
            ("operator", driver.operator_service),
            ("controller-metrics", driver.controller_service),
        ]
        .map(|(role, service)| {
            let secret = format!("{}-{role}-serving-cert", driver.name);
            leaf(&secret, ROOT, service, "openshift", Both)
                .names(service_and_localhost(context, service))
        })
    });
    all.collect()
}
