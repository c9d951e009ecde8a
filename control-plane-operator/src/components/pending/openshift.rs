//! Further components of OpenShift.

use control_plane_component::certificate::Usage::Server;
use control_plane_component::certificate::{ROOT, leaf};
use control_plane_component::{Component, Context, Leaf};

use super::pending;

pub(super) fn components() -> [Component; 1] {
    [pending("machine-config-server").with_certificates(machine_config_server)]
}

fn machine_config_server(context: &Context<'_>) -> Vec<Leaf> {
    let name = "machine-config-server";
    let pool = format!("*.{name}.{}.svc.cluster.local", context.namespace());
    vec![leaf("mcs-crt", ROOT, name, "openshift", Server).names([pool])]
}
