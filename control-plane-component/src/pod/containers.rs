//! Settings of all containers: images, termination messages and root file systems.

use k8s_openapi::api::core::v1::{PodSpec, SecurityContext};

use super::{Context, Result, containers_mut};

/// Replaces image names with pull specs of the release.
pub(super) fn images(pod: &mut PodSpec, context: &Context<'_>) -> Result<()> {
    for container in containers_mut(pod) {
        if let Some(name) = &container.image {
            let image = context.release.image(name)?;
            let policy = if image.ends_with(":latest") {
                "Always"
            } else {
                "IfNotPresent"
            };
            container.image_pull_policy = Some(policy.to_owned());
            container.image = Some(image);
        }
    }
    Ok(())
}

/// Sets the termination message policy, the pull policy of containers that were added, and read-only root file systems.
pub(super) fn defaults(pod: &mut PodSpec) {
    for container in containers_mut(pod) {
        container.termination_message_policy = Some("FallbackToLogsOnError".to_owned());
        let policy = &mut container.image_pull_policy;
        policy.get_or_insert_with(|| "IfNotPresent".to_owned());
    }
    for container in &mut pod.containers {
        let context = container
            .security_context
            .get_or_insert_with(SecurityContext::default);
        context.read_only_root_filesystem = Some(true);
    }
}
