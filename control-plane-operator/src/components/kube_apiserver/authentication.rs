//! Who may say who he is: the OAuth server of the guest, or OIDC providers of the user's.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::{Value, json};

use super::kubeconfig::{base64, put, secret_value, yaml};
use crate::component::{Context, Result};

const AUTHENTICATOR: &str = "openshift-authenticator-cert";

/// The providers of tokens that the API server itself trusts.
#[expect(clippy::unnecessary_wraps, reason = "the form of adapt functions")]
pub(super) fn config(context: &Context<'_>, config_map: &mut ConfigMap) -> Result<()> {
    let configuration = context.spec().configuration.as_ref();
    let providers = configuration
        .and_then(|configuration| configuration.authentication.as_ref())
        .map(|authentication| json!(authentication.oidc_providers));
    let providers = providers.as_ref().and_then(Value::as_array);
    let jwt: Vec<_> = providers
        .into_iter()
        .flatten()
        .filter(|_| !context.is_oauth_enabled())
        .map(|provider| issuer(context, provider))
        .collect();
    let config = json!({
        "apiVersion": "apiserver.config.k8s.io/v1alpha1",
        "kind": "AuthenticationConfiguration",
        "jwt": jwt,
    });
    let data = config_map.data.get_or_insert_default();
    data.insert("auth.json".to_owned(), config.to_string());
    Ok(())
}

/// A provider in the API server's own words.
fn issuer(context: &Context<'_>, provider: &Value) -> Value {
    let issuer = &provider["issuer"];
    let mut url = json!({
        "url": issuer["issuerURL"],
        "audiences": issuer["audiences"],
        "audienceMatchPolicy": "MatchAny",
    });
    let authority = issuer["issuerCertificateAuthority"]["name"].as_str();
    if let Some(bundle) =
        authority.and_then(|name| context.objects.config_value(name, "ca-bundle.crt"))
    {
        url["certificateAuthority"] = json!(bundle);
    }
    let claims = &provider["claimMappings"];
    let mut mappings = json!({ "username": username(issuer, &claims["username"]) });
    if let Some(groups) = claims["groups"]["claim"]
        .as_str()
        .filter(|claim| !claim.is_empty())
    {
        let prefix = claims["groups"]["prefix"].as_str().unwrap_or_default();
        mappings["groups"] = json!({ "claim": groups, "prefix": prefix });
    }
    let rules = provider["claimValidationRules"]
        .as_array()
        .into_iter()
        .flatten();
    let rules: Vec<_> = rules
        .map(|rule| rule["requiredClaim"].clone())
        .filter(Value::is_object)
        .collect();
    json!({ "issuer": url, "claimMappings": mappings, "claimValidationRules": rules })
}

fn username(issuer: &Value, mapping: &Value) -> Value {
    let claim = mapping["claim"].as_str().unwrap_or_default();
    let prefix = match mapping["prefixPolicy"].as_str() {
        Some("Prefix") => mapping["prefix"]["prefixString"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        Some("NoPrefix") => String::new(),
        // Names of different issuers must not be taken for each other; an e-mail address says whose it is.
        _ if claim == "email" => String::new(),
        _ => format!("{}#", issuer["issuerURL"].as_str().unwrap_or_default()),
    };
    json!({ "claim": claim, "prefix": prefix })
}

/// How the API server asks whose an OAuth token is.
pub(super) fn webhook(context: &Context<'_>, secret: &mut Secret) -> Result<()> {
    let namespace = context.namespace();
    let authority = secret_value(context, "root-ca", "ca.crt")?;
    let certificate = secret_value(context, AUTHENTICATOR, "tls.crt")?;
    let key = secret_value(context, AUTHENTICATOR, "tls.key")?;
    let text = yaml(&json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "local-cluster", "cluster": {
            "server": format!(
                "https://openshift-oauth-apiserver.{namespace}.svc:443/apis/oauth.openshift.io/v1/tokenreviews"
            ),
            "certificate-authority-data": base64(&authority),
        } }],
        "contexts": [{ "name": "local-context", "context": {
            "cluster": "local-cluster", "user": "openshift-authenticator",
        } }],
        "current-context": "local-context",
        "users": [{ "name": "openshift-authenticator", "user": {
            "client-certificate-data": base64(&certificate), "client-key-data": base64(&key),
        } }],
    }));
    put(secret, "kubeconfig", text);
    Ok(())
}

/// What clients are told of the OAuth server.
#[expect(clippy::unnecessary_wraps, reason = "the form of adapt functions")]
pub(super) fn metadata(context: &Context<'_>, config_map: &mut ConfigMap) -> Result<()> {
    let server = context.infra.oauth.url();
    let metadata = json!({
        "issuer": server,
        "authorization_endpoint": format!("{server}/oauth/authorize"),
        "token_endpoint": format!("{server}/oauth/token"),
        "scopes_supported": [
            "user:check-access", "user:full", "user:info", "user:list-projects", "user:list-scoped-projects",
        ],
        "response_types_supported": ["code", "token"],
        "grant_types_supported": ["authorization_code", "implicit"],
        "code_challenge_methods_supported": ["plain", "S256"],
    });
    let data = config_map.data.get_or_insert_default();
    data.insert("oauthMetadata.json".to_owned(), metadata.to_string());
    Ok(())
}
