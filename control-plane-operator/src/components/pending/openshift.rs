//! Further components of OpenShift: ingress and the machine config server.

use control_plane_component::certificate::Usage::Server;
use control_plane_component::certificate::{ROOT, leaf, server};
use control_plane_component::{Component, Context, Leaf};

use super::pending;

pub(super) fn components() -> [Component; 2] {
    [
        pending("ingress-operator").with_certificates(ingress),
        pending("machine-config-server").with_certificates(machine_config_server),
    ]
}

/// The default certificate of the guest's Routes.
fn ingress(context: &Context<'_>) -> Vec<Leaf> {
    let domain = context.apps_domain();
    vec![server("ingress-crt", "openshift-ingress").names([format!("*.{domain}")])]
}

fn machine_config_server(context: &Context<'_>) -> Vec<Leaf> {
    let name = "machine-config-server";
    let pool = format!("*.{name}.{}.svc.cluster.local", context.namespace());
    vec![leaf("mcs-crt", ROOT, name, "openshift", Server).names([pool])]
}
