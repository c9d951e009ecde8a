//! Further components of OpenShift: packageserver, ingress and the machine config server.

use control_plane_component::certificate::Usage::Server;
use control_plane_component::certificate::{ROOT, leaf, server};
use control_plane_component::names::service_and_guest;
use control_plane_component::{Component, Context, Leaf, Publication};

use super::pending;
use crate::infra::services::Service;

const PACKAGES: &str = "packageserver";

pub(super) fn components() -> [Component; 3] {
    [
        pending(PACKAGES)
            .with_certificates(|context| vec![api(context, PACKAGES)])
            .published_by(Publication {
                services: &[PACKAGES],
                objects: |_| vec![Service::internal(PACKAGES, 5443).object()],
                ..Publication::NONE
            }),
        pending("ingress-operator").with_certificates(ingress),
        pending("machine-config-server").with_certificates(machine_config_server),
    ]
}

fn api(context: &Context<'_>, name: &str) -> Leaf {
    server(&format!("{name}-cert"), name).names(service_and_guest(context, name))
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
