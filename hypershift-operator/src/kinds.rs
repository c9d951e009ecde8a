//! API resources of kinds, most of which have no Rust type here.

use api::hypershift::v1beta1::ControlPlaneComponent;
use kube::api::ApiResource;

/// Routes of OpenShift.
pub(crate) fn route() -> ApiResource {
    ApiResource {
        group: "route.openshift.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "route.openshift.io/v1".to_owned(),
        kind: "Route".to_owned(),
        plural: "routes".to_owned(),
    }
}

/// Which metrics of pods Prometheus collects.
pub(crate) fn pod_monitor() -> ApiResource {
    ApiResource {
        group: "monitoring.coreos.com".to_owned(),
        version: "v1".to_owned(),
        api_version: "monitoring.coreos.com/v1".to_owned(),
        kind: "PodMonitor".to_owned(),
        plural: "podmonitors".to_owned(),
    }
}

/// The rollout status of a component of a control plane.
pub(crate) fn control_plane_component() -> ApiResource {
    ApiResource::erase::<ControlPlaneComponent>(&())
}
