//! What pods may do.

use k8s_openapi::api::core::v1::{PodSecurityContext, PodSpec};

use super::{Component, Context};
use crate::declaration::Class;

/// With it, pods of the API server look at metrics of the management cluster.
const NEED_METRICS: &str = "hypershift.openshift.io/need-metrics-server-access";

/// Mounts a token for the management cluster's API server only where it is used.
pub(super) fn token(component: &Component, context: &Context<'_>, pod: &mut PodSpec) {
    let needed = component.traits.management_api || context.annotation(NEED_METRICS).is_some();
    pod.automount_service_account_token = Some(needed);
}

/// The user that pods run as, where the management cluster does not choose one.
pub(super) fn context(component: &Component, context: &Context<'_>, pod: &mut PodSpec) {
    let Some(uid) = context.settings.uid else {
        return;
    };
    let security = pod
        .security_context
        .get_or_insert_with(PodSecurityContext::default);
    security.run_as_user = Some(uid);
    if component.traits.class == Class::Etcd {
        security.fs_group = Some(uid);
    }
}
