//! Settings that the components of the Operator Lifecycle Manager (OLM) share.

use api::hypershift::v1beta1::HostedControlPlaneSpec;
use api::hypershift::v1beta1::hosted_cluster::OlmCatalogPlacement;
use control_plane_component::{Component, Context, Konnectivity, Prober};
use k8s_openapi::api::core::v1::Container;

use super::edit;

/// The group of OLM in the guest.
const GROUP: &str = "operators.coreos.com";
/// The type that all of them need.
pub(super) const CATALOG_SOURCE: (&str, &str, &str) = (GROUP, "v1alpha1", "CatalogSource");
/// The types that olm-operator needs.
pub(super) const OPERATOR_TYPES: [(&str, &str, &str); 5] = [
    CATALOG_SOURCE,
    (GROUP, "v1alpha1", "Subscription"),
    (GROUP, "v2", "OperatorCondition"),
    (GROUP, "v1", "OperatorGroup"),
    (GROUP, "v1", "OLMConfig"),
];
/// Services of the default catalogs.
const CATALOGS: [&str; 3] = [
    "certified-operators",
    "community-operators",
    "redhat-operators",
];

/// Adds what all of them have: they reach catalogs in the guest, and wait for these types of the guest.
pub(super) fn common(
    component: Component,
    types: &'static [(&'static str, &'static str, &'static str)],
) -> Component {
    component
        .konnectivity(Konnectivity {
            socks5: Some(&[]),
            ..Konnectivity::default()
        })
        .prober(Prober {
            kubeconfig_volume: Some("kubeconfig"),
            required_apis: types,
            ..Prober::default()
        })
}

/// Sets the environment variables that all of them have.
pub(super) fn environment(context: &Context<'_>, container: &mut Container) {
    edit::env(container, "RELEASE_VERSION", &context.user_release.version);
    // These connections do not go through the proxy into the guest.
    let mut direct = vec!["kube-apiserver"];
    if are_catalogs_in_control_plane(context.spec()) {
        direct.extend(CATALOGS);
    }
    edit::env(container, "NO_PROXY", direct.join(","));
}

/// Whether the default catalogs, if there are some, run in the control plane.
pub(super) fn are_catalogs_in_control_plane(spec: &HostedControlPlaneSpec) -> bool {
    spec.olm_catalog_placement == OlmCatalogPlacement::Management
}

/// Whether objects for monitoring are enabled.
pub(super) fn is_monitored(context: &Context<'_>) -> bool {
    context.is_monitored()
}
