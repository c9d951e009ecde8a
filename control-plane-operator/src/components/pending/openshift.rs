//! OpenShift's own API servers and controller managers.

use control_plane_component::certificate::Usage::{Client, Server};
use control_plane_component::certificate::{CSR, ROOT, leaf, server};
use control_plane_component::names::{service, service_and_guest};
use control_plane_component::{Component, Context, Leaf, Publication};

use super::pending;
use crate::infra::services::Service;

const API: &str = "openshift-apiserver";
const OAUTH_API: &str = "openshift-oauth-apiserver";
const PACKAGES: &str = "packageserver";
const CONTROLLERS: &str = "openshift-controller-manager";

pub(super) fn components() -> [Component; 5] {
    [
        pending(API)
            .with_certificates(|context| vec![api(context, API)])
            .published_by(Publication {
                services: &[API],
                objects: |_| vec![Service::internal(API, 8443).object()],
                ..Publication::NONE
            }),
        pending(OAUTH_API)
            .with_certificates(oauth_api)
            .published_by(Publication {
                services: &[OAUTH_API],
                objects: |context| {
                    let service = Service::internal(OAUTH_API, 8443).object();
                    context
                        .is_oauth_enabled()
                        .then_some(service)
                        .into_iter()
                        .collect()
                },
                ..Publication::NONE
            }),
        pending(PACKAGES)
            .with_certificates(|context| vec![api(context, PACKAGES)])
            .published_by(Publication {
                services: &[PACKAGES],
                objects: |_| vec![Service::internal(PACKAGES, 5443).object()],
                ..Publication::NONE
            }),
        pending(CONTROLLERS).with_certificates(controllers),
        pending("machine-config-server").with_certificates(machine_config_server),
    ]
}

fn api(context: &Context<'_>, name: &str) -> Leaf {
    server(&format!("{name}-cert"), name).names(service_and_guest(context, name))
}

fn oauth_api(context: &Context<'_>) -> Vec<Leaf> {
    // The guest's API server authenticates users with it.
    let authenticator = leaf(
        "openshift-authenticator-cert",
        CSR,
        "system:serviceaccount:openshift-oauth-apiserver:openshift-authenticator",
        "openshift",
        Client,
    );
    vec![api(context, OAUTH_API), authenticator]
}

fn controllers(context: &Context<'_>) -> Vec<Leaf> {
    let managers = [
        CONTROLLERS,
        "openshift-route-controller-manager",
        "cluster-policy-controller",
    ];
    managers
        .map(|name| {
            server(&format!("{name}-cert"), CONTROLLERS).names(service(context, CONTROLLERS))
        })
        .into()
}

fn machine_config_server(context: &Context<'_>) -> Vec<Leaf> {
    let name = "machine-config-server";
    let pool = format!("*.{name}.{}.svc.cluster.local", context.namespace());
    vec![leaf("mcs-crt", ROOT, name, "openshift", Server).names([pool])]
}
