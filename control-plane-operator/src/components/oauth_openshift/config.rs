//! The configuration of the OAuth server.

use api::hypershift::v1beta1::configuration::api_server::ApiServerNamedServingCert;
use api::hypershift::v1beta1::configuration::oauth::OAuthConfiguration;
use control_plane_component::facts::url;
use control_plane_component::{Context, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use super::{NAME, identity_providers};
use crate::components::{edit, serving};

/// Annotation: overrides the URL where users log in.
const LOGIN_URL: &str = "oauth.hypershift.openshift.io/login-url-override";

pub(super) fn adapt(context: &Context<'_>, config_map: &mut ConfigMap) -> Result<()> {
    identity_providers::remember(context, config_map);
    edit::config(config_map, "config.yaml", |config| {
        serve(context, &mut config["servingInfo"]);
        let oauth = &mut config["oauthConfig"];
        urls(context, oauth);
        tokens(context, &mut oauth["tokenConfig"]);
        oauth["identityProviders"] = json!(identity_providers::convert(context).providers);
        Ok(())
    })
}

/// The guest's OAuth configuration.
pub(super) fn requested<'a>(context: &Context<'a>) -> Option<&'a OAuthConfiguration> {
    context.spec().configuration.as_ref()?.oauth.as_ref()
}

/// Serving certificates of users, by name.
pub(super) fn named_certificates<'a>(context: &Context<'a>) -> &'a [ApiServerNamedServingCert] {
    let configuration = context.spec().configuration.as_ref();
    configuration
        .and_then(|configuration| configuration.api_server.as_ref())
        .and_then(|server| server.serving_certs.as_ref())
        .map_or(&[], |certificates| {
            certificates.named_certificates.as_slice()
        })
}

/// Mount path of a named certificate; the first has number one.
pub(super) fn named_certificate_path(number: usize) -> String {
    format!("/etc/kubernetes/certs/named-{number}")
}

fn serve(context: &Context<'_>, info: &mut Value) {
    serving::tls(context, info);
    let named = named_certificates(context);
    if named.is_empty() {
        return;
    }
    let named = named.iter().zip(1..).map(|(certificate, number)| {
        let path = named_certificate_path(number);
        json!({
            "names": certificate.names,
            "certFile": format!("{path}/tls.crt"),
            "keyFile": format!("{path}/tls.key"),
        })
    });
    info["namedCertificates"] = named.collect();
}

/// The URLs of the server within and outside of the control plane, and of the API server as users see it.
fn urls(context: &Context<'_>, oauth: &mut Value) {
    let service = format!("{NAME}.{}.svc.cluster.local", context.namespace());
    oauth["masterURL"] = json!(url(&service, 6443));
    oauth["masterPublicURL"] = json!(context.infra.oauth.url());
    oauth["loginURL"] = json!(login_url(context));
}

fn login_url(context: &Context<'_>) -> String {
    let chosen = context.annotation(LOGIN_URL);
    if let Some(chosen) = chosen.filter(|chosen| !chosen.is_empty()) {
        return chosen.to_owned();
    }
    let api = &context.infra.api;
    let named = context.spec().kube_api_server_dns_name.as_deref();
    let named = named.filter(|name| !name.is_empty());
    url(named.unwrap_or(&api.host), api.port)
}

fn tokens(context: &Context<'_>, tokens: &mut Value) {
    let Some(requested) = requested(context).and_then(|oauth| oauth.token_config.as_ref()) else {
        return;
    };
    let max_age = requested.access_token_max_age_seconds;
    if let Some(seconds) = max_age.filter(|seconds| *seconds > 0) {
        tokens["accessTokenMaxAgeSeconds"] = json!(seconds);
    }
    if let Some(timeout) = &requested.access_token_inactivity_timeout {
        tokens["accessTokenInactivityTimeout"] = json!(timeout);
    }
}
