//! Names that several parts of the system use.

/// Label of the namespace of a control plane, and of its pods.
pub const HOSTED_CONTROL_PLANE: &str = "hypershift.openshift.io/hosted-control-plane";

/// The security context constraints (SCCs) that the pods of a control plane run under; those of older management clusters
/// have the shorter name.
pub const CONSTRAINTS: [&str; 2] = ["restricted", "restricted-v2"];

/// The namespace of a hosted cluster's control plane: `<namespace>-<name>`, with dashes for the dots of the name.
///
/// ```
/// assert_eq!(api::names::control_plane_namespace("clusters", "a.b"), "clusters-a-b");
/// ```
pub fn control_plane_namespace(namespace: &str, name: &str) -> String {
    format!("{namespace}-{}", name.replace('.', "-"))
}
