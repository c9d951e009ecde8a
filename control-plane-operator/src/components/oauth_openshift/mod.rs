//! oauth-openshift: the OAuth server, which logs users of the guest in.

mod audit;
mod config;
mod deployment;
mod identity_providers;
mod publishing;
mod session;
mod templates;

use control_plane_component::certificate::server;
use control_plane_component::names::known;
use control_plane_component::{Component, Context, Konnectivity, Leaf, Prober, assets};

use super::edit;
pub(crate) use identity_providers::{inquiries, validate};
pub(crate) use session::{needs_session_secret, new_session_secret};

/// Name of the component and its Service, and app label of its pods.
const NAME: &str = "oauth-openshift";

pub(super) fn component() -> Component {
    Component::new(
        NAME,
        assets!(
            "audit-config.yaml",
            "config.yaml",
            "default-error-template.yaml",
            "default-login-template.yaml",
            "default-provider-selection-template.yaml",
            "deployment.yaml",
            "pdb.yaml",
            "session-secret.yaml",
        ),
    )
    .api_critical()
    .request_serving()
    .zone_spread()
    .depends_on(&["openshift-apiserver"])
    .enabled_if(is_enabled)
    .with_certificates(certificates)
    .published_by(publishing::PUBLICATION)
    .prober(Prober::default())
    .konnectivity(proxies())
    .manifest("audit-config.yaml", audit::adapt)
    .manifest("config.yaml", config::adapt)
    .manifest("default-error-template.yaml", templates::error)
    .manifest("default-login-template.yaml", templates::login)
    .manifest(
        "default-provider-selection-template.yaml",
        templates::provider_selection,
    )
    .manifest("pdb.yaml", edit::disruption_budget)
    .pki_managed("session-secret.yaml")
    .adapt(deployment::adapt)
}

/// Unless external OIDC providers replace it.
fn is_enabled(context: &Context<'_>) -> bool {
    context.is_oauth_enabled()
}

fn certificates(context: &Context<'_>) -> Vec<Leaf> {
    let service = format!("{NAME}.{}.svc.cluster.local", context.namespace());
    let serving = server("oauth-server-crt", "openshift-oauth").names([service]);
    vec![serving.names(known(&context.infra.oauth.host))]
}

/// Identity providers may be in the guest's network: HTTPS ones are reached by the first proxy, LDAP by the second.
fn proxies() -> Konnectivity {
    Konnectivity {
        https: Some(&[
            "--serving-port=8092",
            "--connect-directly-to-cloud-apis=true",
        ]),
        socks5: Some(&[
            "--resolve-from-guest-cluster-dns=true",
            "--resolve-from-management-cluster-dns=true",
        ]),
        ..Konnectivity::default()
    }
}
