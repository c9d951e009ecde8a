//! Kinds that have no Rust type here.

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
