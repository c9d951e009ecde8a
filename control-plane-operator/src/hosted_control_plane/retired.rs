//! Objects of components that no longer exist.

use control_plane_component::render::Identity;

/// API version, kind and name of objects of the catalog of Red Hat Marketplace, which was discontinued.
const OBJECTS: [(&str, &str, &str); 3] = [
    ("apps/v1", "Deployment", "redhat-marketplace-catalog"),
    ("v1", "Service", "redhat-marketplace"),
    (
        "hypershift.openshift.io/v1beta1",
        "ControlPlaneComponent",
        "redhat-marketplace-catalog",
    ),
];

/// The objects to delete.
pub(super) fn objects() -> impl Iterator<Item = Identity> {
    let all = OBJECTS.into_iter();
    all.map(|(api_version, kind, name)| Identity::new(api_version, kind, name))
}
