//! What components that use Cluster API need: its groups in their Roles, and a kubeconfig.

use api::annotations::cluster::DISABLE_MACHINE_MANAGEMENT;
use api::group;
use api::group::Side;
use control_plane_component::{Context, Result, sidecar};
use k8s_openapi::api::rbac::v1::Role;

/// Replaces `<core>` and `<infrastructure>` in a Role by the groups that objects are stored in. No others are named:
/// components have no permissions for the platform's own Cluster API.
#[expect(clippy::unnecessary_wraps, reason = "the form of adapt functions")]
pub(crate) fn role(context: &Context<'_>, role: &mut Role) -> Result<()> {
    let side = context.settings.capi;
    let rules = role.rules.iter_mut().flatten();
    for group in rules.filter_map(|rule| rule.api_groups.as_mut()).flatten() {
        match group.as_str() {
            "<core>" => *group = group::core(side),
            "<infrastructure>" => *group = group::infrastructure(side),
            _ => {}
        }
    }
    Ok(())
}

/// The flag that leads a program to the proxy. Some prefer the pod's own account to the variable `KUBECONFIG`, so
/// they need the flag.
pub(crate) fn management_kubeconfig(context: &Context<'_>, flag: &str) -> Option<String> {
    let is_private = context.settings.capi == Side::Private;
    is_private.then(|| format!("{flag}={}", sidecar::kubeconfig_path()))
}

/// Whether machines are managed, and the guest can be reached.
pub(crate) fn manages_machines(context: &Context<'_>) -> bool {
    let status = context.hcp.status.as_ref();
    let is_reachable = status.is_some_and(|status| status.kube_config.is_some());
    is_reachable && !DISABLE_MACHINE_MANAGEMENT.is_set(context.annotations())
}
