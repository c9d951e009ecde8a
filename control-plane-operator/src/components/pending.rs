//! Components that this operator does not run yet: their certificates, Services and Routes are there already, because other
//! parts of a hosted cluster refer to them.
//!
//! Each is declared like a component that runs, without manifests. When it gets some, it gets its own folder.

mod clouds;
mod metrics_forwarding;
mod oauth_server;
mod openshift;
mod operators;

use control_plane_component::Component;

/// All of them.
pub(super) fn components() -> Vec<Component> {
    let mut all = vec![oauth_server::component()];
    all.extend(openshift::components());
    all.extend(operators::components());
    all.extend(clouds::components());
    all.extend(metrics_forwarding::components());
    all
}

/// A component without manifests.
fn pending(name: &'static str) -> Component {
    Component::new(name, &[])
}
