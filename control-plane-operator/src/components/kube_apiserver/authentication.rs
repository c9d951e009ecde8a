//! Authentication: the OAuth server of the guest, or external OIDC providers.

use api::hypershift::v1beta1::configuration::authentication::claims::{
    PrefixedClaimMapping, TokenClaimValidationRule, TokenValidationRuleType, UsernameClaimMapping,
    UsernamePrefixPolicy,
};
use api::hypershift::v1beta1::configuration::authentication::provider::OidcProvider;
use control_plane_component::{Context, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::{Value, json};

use super::kubeconfig::{base64, put, secret_value, yaml};

const AUTHENTICATOR: &str = "openshift-authenticator-cert";

/// The OIDC providers that the API server trusts.
#[expect(clippy::unnecessary_wraps, reason = "the form of adapt functions")]
pub(super) fn config(context: &Context<'_>, config_map: &mut ConfigMap) -> Result<()> {
    let configuration = context.spec().configuration.as_ref();
    let authentication = configuration.and_then(|it| it.authentication.as_ref());
    let providers = authentication.map(|it| it.oidc_providers.as_slice());
    let jwt: Vec<_> = providers
        .into_iter()
        .flatten()
        .filter(|_| !context.is_oauth_enabled())
        .map(|provider| {
            let authority = provider.issuer.issuer_certificate_authority.as_ref();
            let bundle =
                authority.and_then(|it| context.objects.config_value(&it.name, "ca-bundle.crt"));
            authenticator(provider, bundle.as_deref())
        })
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

/// Converts a provider to the API server's format. Every field matters: a dropped validation rule would admit more
/// users.
fn authenticator(provider: &OidcProvider, bundle: Option<&str>) -> Value {
    let mut issuer = json!({
        "url": provider.issuer.issuer_url,
        "audiences": provider.issuer.audiences,
        "audienceMatchPolicy": "MatchAny",
    });
    if let Some(bundle) = bundle {
        issuer["certificateAuthority"] = json!(bundle);
    }
    if let Some(url) = &provider.issuer.discovery_url {
        issuer["discoveryURL"] = json!(url);
    }
    let rules = provider.claim_validation_rules.iter();
    let rules: Vec<_> = rules.filter_map(claim_rule).collect();
    let mut authenticator = json!({
        "issuer": issuer,
        "claimMappings": mappings(provider),
        "claimValidationRules": rules,
    });
    if !provider.user_validation_rules.is_empty() {
        authenticator["userValidationRules"] = json!(provider.user_validation_rules);
    }
    authenticator
}

fn claim_rule(rule: &TokenClaimValidationRule) -> Option<Value> {
    match rule.type_ {
        TokenValidationRuleType::RequiredClaim => rule.required_claim.as_ref().map(|it| json!(it)),
        TokenValidationRuleType::Cel => rule.cel.as_ref().map(|it| json!(it)),
    }
}

/// The claim mappings of user names, groups, UID and extra fields.
fn mappings(provider: &OidcProvider) -> Value {
    let claims = &provider.claim_mappings;
    let issuer = &provider.issuer.issuer_url;
    let mut mappings = json!({ "username": username(issuer, &claims.username) });
    if let Some(groups) = claims.groups.as_ref().and_then(groups) {
        mappings["groups"] = groups;
    }
    if let Some(uid) = &claims.uid {
        mappings["uid"] = json!(uid);
    }
    if !claims.extra.is_empty() {
        mappings["extra"] = json!(claims.extra);
    }
    mappings
}

fn groups(mapping: &PrefixedClaimMapping) -> Option<Value> {
    if let Some(expression) = &mapping.expression {
        return Some(json!({ "expression": expression }));
    }
    let claim = mapping.claim.as_ref().filter(|claim| !claim.is_empty())?;
    let prefix = mapping.prefix.as_deref().unwrap_or_default();
    Some(json!({ "claim": claim, "prefix": prefix }))
}

fn username(issuer: &str, mapping: &UsernameClaimMapping) -> Value {
    if let Some(expression) = &mapping.expression {
        return json!({ "expression": expression });
    }
    let claim = mapping.claim.as_deref().unwrap_or_default();
    let prefix = match mapping.prefix_policy {
        Some(UsernamePrefixPolicy::Prefix) => {
            let prefix = mapping.prefix.as_ref().map(|it| it.prefix_string.clone());
            prefix.unwrap_or_default()
        }
        Some(UsernamePrefixPolicy::NoPrefix) => String::new(),
        // Names from different issuers must not collide; e-mail addresses are globally unique.
        Some(UsernamePrefixPolicy::Unset) | None if claim == "email" => String::new(),
        Some(UsernamePrefixPolicy::Unset) | None => format!("{issuer}#"),
    };
    json!({ "claim": claim, "prefix": prefix })
}

/// The webhook kubeconfig with which the API server authenticates OAuth tokens.
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

/// OAuth server metadata for clients.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn provider(value: Value) -> OidcProvider {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn oidc_validation_rules_are_all_translated() {
        let provider = provider(json!({
            "name": "sso",
            "issuer": {
                "issuerURL": "https://login.example.com",
                "audiences": ["cluster"],
                "discoveryURL": "https://internal.example.com/discovery",
            },
            "claimMappings": {
                "username": { "expression": "claims.sub" },
                "groups": { "expression": "claims.roles" },
                "uid": { "claim": "oid" },
                "extra": [{ "key": "example.com/team", "valueExpression": "claims.team" }],
            },
            "claimValidationRules": [
                { "type": "RequiredClaim", "requiredClaim": { "claim": "tier", "requiredValue": "1" } },
                { "type": "CEL", "cel": { "expression": "claims.verified", "message": "not verified" } },
            ],
            "userValidationRules": [{ "expression": "user.username != 'root'", "message": "reserved" }],
        }));
        let expected = json!({
            "issuer": {
                "url": "https://login.example.com",
                "audiences": ["cluster"],
                "audienceMatchPolicy": "MatchAny",
                "certificateAuthority": "PEM",
                "discoveryURL": "https://internal.example.com/discovery",
            },
            "claimMappings": {
                "username": { "expression": "claims.sub" },
                "groups": { "expression": "claims.roles" },
                "uid": { "claim": "oid" },
                "extra": [{ "key": "example.com/team", "valueExpression": "claims.team" }],
            },
            "claimValidationRules": [
                { "claim": "tier", "requiredValue": "1" },
                { "expression": "claims.verified", "message": "not verified" },
            ],
            "userValidationRules": [{ "expression": "user.username != 'root'", "message": "reserved" }],
        });
        assert_eq!(authenticator(&provider, Some("PEM")), expected);
    }

    #[test]
    fn user_names_are_prefixed_by_issuer() {
        let prefix = json!({ "prefixString": "sso:" });
        for (mapping, expected) in [
            (json!({ "claim": "sub" }), "https://login.example.com#"),
            (
                json!({ "claim": "sub", "prefixPolicy": "" }),
                "https://login.example.com#",
            ),
            (json!({ "claim": "email" }), ""),
            (json!({ "claim": "sub", "prefixPolicy": "NoPrefix" }), ""),
            (
                json!({ "claim": "email", "prefixPolicy": "Prefix", "prefix": prefix }),
                "sso:",
            ),
        ] {
            let mapping = serde_json::from_value(mapping).unwrap();
            let found = username("https://login.example.com", &mapping);
            assert_eq!(found["prefix"], expected, "{found}");
        }
    }
}
