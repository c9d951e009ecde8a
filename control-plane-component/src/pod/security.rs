//! Token mounts and security contexts of pods.

use api::hypershift::v1beta1::platform::PlatformType;
use k8s_openapi::api::core::v1::{
    Capabilities, PodSecurityContext, PodSpec, PodTemplateSpec, SeccompProfile, SecurityContext,
};

use super::{Component, Context, containers_mut};
use crate::declaration::Class;

/// Annotation and label of pods that access metrics of the management cluster.
pub const NEED_METRICS: &str = "hypershift.openshift.io/need-metrics-server-access";

/// Mounts a token for the management cluster's API server only if the component needs it.
pub(super) fn token(component: &Component, template: &mut PodTemplateSpec) {
    let traits = &component.traits;
    let annotations = template.metadata.iter().flat_map(|it| &it.annotations);
    let mut annotations = annotations.flatten();
    let needs_metrics = annotations.any(|(key, value)| key == NEED_METRICS && value == "true");
    let needed = traits.management_api || traits.token || needs_metrics;
    let pod = template.spec.get_or_insert_default();
    pod.automount_service_account_token = Some(needed);
}

/// Sets the user of pods, and what the pod security standard `restricted` requires, if the management cluster has no
/// security context constraints (SCCs), which complete pods. Older SCCs reject pods that name a seccomp profile. On Google
/// Cloud, containers have the same restrictions in any case.
pub(super) fn context(component: &Component, context: &Context<'_>, pod: &mut PodSpec) {
    if let Some(uid) = context.settings.uid {
        user(component, uid, pod);
    }
    let is_gcp = context.is_on(PlatformType::Gcp);
    if context.settings.uid.is_some() || is_gcp {
        restrict(pod, is_gcp.then_some(true));
    }
}

fn user(component: &Component, uid: i64, pod: &mut PodSpec) {
    let security = pod
        .security_context
        .get_or_insert_with(PodSecurityContext::default);
    security.run_as_user = Some(uid);
    if component.traits.class == Class::Etcd {
        security.fs_group = Some(uid);
    }
    security.run_as_non_root = Some(true);
    security
        .seccomp_profile
        .get_or_insert_with(|| SeccompProfile {
            type_: "RuntimeDefault".to_owned(),
            localhost_profile: None,
        });
}

fn restrict(pod: &mut PodSpec, run_as_non_root: Option<bool>) {
    for container in containers_mut(pod) {
        let security = container
            .security_context
            .get_or_insert_with(SecurityContext::default);
        security.allow_privilege_escalation = Some(false);
        security.run_as_non_root = run_as_non_root.or(security.run_as_non_root);
        let capabilities = security
            .capabilities
            .get_or_insert_with(Capabilities::default);
        capabilities.drop = Some(vec!["ALL".to_owned()]);
    }
}
