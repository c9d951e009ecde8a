//! Names that are made of other names.

/// The namespace of a hosted cluster's control plane: `<namespace>-<name>`, with dashes for the dots of the name.
///
/// ```
/// assert_eq!(api::names::control_plane_namespace("clusters", "a.b"), "clusters-a-b");
/// ```
pub fn control_plane_namespace(namespace: &str, name: &str) -> String {
    format!("{namespace}-{}", name.replace('.', "-"))
}
