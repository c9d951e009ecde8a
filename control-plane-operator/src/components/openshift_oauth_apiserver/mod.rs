//! openshift-oauth-apiserver: users, groups and OAuth tokens, and reviews of these tokens.

use control_plane_component::certificate::Usage::Client;
use control_plane_component::certificate::{CSR, leaf, server};
use control_plane_component::names::service_and_guest;
use control_plane_component::{
    Component, Context, Error, Konnectivity, Leaf, Prober, Publication, Result, Workload, assets,
};
use k8s_openapi::api::core::v1::Container;
use serde_json::Value;

use super::{audit, edit, etcd_client, flags, go_duration, readiness};
use crate::infra::services::Service;

/// The component's name.
const NAME: &str = "openshift-oauth-apiserver";
/// The field with the time after which an unused token expires.
const INACTIVITY_TIMEOUT: &str =
    "spec.configuration.oauth.tokenConfig.accessTokenInactivityTimeout";

pub(super) fn component() -> Component {
    Component::new(
        NAME,
        assets!("audit-config.yaml", "deployment.yaml", "pdb.yaml"),
    )
    .enabled_if(is_needed)
    .with_certificates(certificates)
    .published_by(Publication {
        services: &[NAME],
        objects: services,
        ..Publication::NONE
    })
    .api_critical()
    .zone_spread()
    .depends_on(&["openshift-apiserver"])
    .prober(Prober::default())
    .konnectivity(Konnectivity {
        socks5: Some(&["--resolve-from-guest-cluster-dns=true"]),
        ..Konnectivity::default()
    })
    .manifest("audit-config.yaml", audit::adapt)
    .manifest("pdb.yaml", edit::disruption_budget)
    .adapt(adapt)
}

/// Users have tokens of the guest's own OAuth server.
fn is_needed(context: &Context<'_>) -> bool {
    context.is_oauth_enabled()
}

fn certificates(context: &Context<'_>) -> Vec<Leaf> {
    let names = service_and_guest(context, NAME);
    // The guest's API server authenticates users with it.
    let authenticator = leaf(
        "openshift-authenticator-cert",
        CSR,
        "system:serviceaccount:openshift-oauth-apiserver:openshift-authenticator",
        "openshift",
        Client,
    );
    let serving = server(&format!("{NAME}-cert"), NAME).names(names);
    vec![serving, authenticator]
}

fn services(context: &Context<'_>) -> Vec<Value> {
    let service = context
        .is_oauth_enabled()
        .then(|| Service::internal(NAME, 8443).object());
    service.into_iter().collect()
}

fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    let pod = edit::pod(workload);
    let server = edit::container(pod, NAME)?;
    arguments(context, server)?;
    edit::env(server, "NO_PROXY", etcd_client::unproxied_hosts(context));
    audit::mount_webhook(context, pod, NAME, "oauth-audit-webhook")?;
    audit::remove_unused_logs(context, pod);
    if !context.is_etcd_managed() {
        let init = pod.init_containers.get_or_insert_default();
        init.retain(|container| container.name != "wait-for-etcd");
    }
    readiness::add_check(context, pod);
    Ok(())
}

fn arguments(context: &Context<'_>, server: &mut Container) -> Result<()> {
    let issuer = &context.spec().issuer_url;
    let etcd = etcd_client::url(context);
    edit::args(
        server,
        [
            format!("--api-audiences={issuer}"),
            format!("--etcd-servers={etcd}"),
        ],
    );
    edit::args(server, flags::tls(context));
    let webhook = audit::webhook_options(context);
    edit::args(
        server,
        webhook.map(|(option, value)| format!("--{option}={value}")),
    );
    edit::args(server, inactivity_timeout(context)?);
    Ok(())
}

/// The time after which an unused token expires, if it does.
fn inactivity_timeout(context: &Context<'_>) -> Result<Option<String>> {
    let configuration = context.spec().configuration.as_ref();
    let timeout = configuration
        .and_then(|configuration| configuration.oauth.as_ref())
        .and_then(|oauth| oauth.token_config.as_ref())
        .and_then(|tokens| tokens.access_token_inactivity_timeout.as_ref());
    let Some(timeout) = timeout.filter(|timeout| !timeout.is_empty()) else {
        return Ok(None);
    };
    let parsed = go_duration::parse(timeout).ok_or_else(|| Error::Invalid {
        field: INACTIVITY_TIMEOUT.to_owned(),
        value: timeout.clone(),
        hint: "write a duration of at least 300s, for example 10m".to_owned(),
    })?;
    let timeout = go_duration::format(parsed);
    Ok(Some(format!("--accesstoken-inactivity-timeout={timeout}")))
}
