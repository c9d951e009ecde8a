//! Settings of components that use Cluster API: API groups in their Roles, and a kubeconfig.

use api::annotations::cluster::DISABLE_MACHINE_MANAGEMENT;
use api::group;
use api::group::CapiTypes;
use control_plane_component::{Context, Result, sidecar};
use k8s_openapi::api::rbac::v1::Role;

/// Replaces `<core>` and `<infrastructure>` in a Role with the API groups that objects are stored in. It grants no
/// others: components have no permissions for the platform's own Cluster API.
#[expect(clippy::unnecessary_wraps, reason = "the form of adapt functions")]
pub(crate) fn role(context: &Context<'_>, role: &mut Role) -> Result<()> {
    let capi_types = context.settings.capi_types;
    let rules = role.rules.iter_mut().flatten();
    for group in rules.filter_map(|rule| rule.api_groups.as_mut()).flatten() {
        match group.as_str() {
            "<core>" => *group = group::core(capi_types),
            "<infrastructure>" => *group = group::infrastructure(capi_types),
            _ => {}
        }
    }
    Ok(())
}

/// The flag with the proxy's kubeconfig. Some programs prefer the in-cluster config to the variable `KUBECONFIG`, so
/// they need the flag.
pub(crate) fn management_kubeconfig(context: &Context<'_>, flag: &str) -> Option<String> {
    let is_private = context.settings.capi_types == CapiTypes::Private;
    is_private.then(|| format!("{flag}={}", sidecar::kubeconfig_path()))
}

/// Whether machine management is enabled, and the guest's kubeconfig exists.
pub(crate) fn manages_machines(context: &Context<'_>) -> bool {
    let status = context.hcp.status.as_ref();
    let is_reachable = status.is_some_and(|status| status.kube_config.is_some());
    is_reachable && !DISABLE_MACHINE_MANAGEMENT.is_set(context.annotations())
}
