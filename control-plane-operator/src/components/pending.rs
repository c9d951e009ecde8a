//! Components that this operator does not run yet: their certificates, Services and Routes exist already, because other
//! components refer to them.
//!
//! They are declared like other components, but without manifests. A component that gets manifests moves to its own
//! directory.

mod openshift;

use control_plane_component::Component;

/// All of them.
pub(super) fn components() -> Vec<Component> {
    openshift::components().into()
}

/// A component without manifests.
fn pending(name: &'static str) -> Component {
    Component::new(name, &[])
}
