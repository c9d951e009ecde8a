//! Authentication: the OAuth server of the guest, or external OIDC providers.

use api::hypershift::v1beta1::configuration::authentication::AuthenticationConfiguration;
use api::hypershift::v1beta1::configuration::authentication::claims::{
    PrefixedClaimMapping, TokenClaimValidationRule, TokenValidationRuleType, UsernameClaimMapping,
    UsernamePrefixPolicy,
};
use api::hypershift::v1beta1::configuration::authentication::provider::OidcProvider;
use control_plane_component::{Context, Error, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::{Value, json};

use super::kubeconfig::{base64, put, secret_value, yaml};

const AUTHENTICATOR: &str = "openshift-authenticator-cert";
/// The claim that identifies a user at an issuer.
const SUBJECT: &str = "sub";

/// The OIDC providers that the API server trusts.
pub(super) fn config(context: &Context<'_>, config_map: &mut ConfigMap) -> Result<()> {
    let providers = requested(context).map(|it| it.oidc_providers.as_slice());
    let jwt = providers
        .into_iter()
        .flatten()
        .filter(|_| !context.is_oauth_enabled())
        .map(|provider| {
            let bundle = authorities(context, provider)?;
            Ok(authenticator(provider, bundle.as_deref()))
        })
        .collect::<Result<Vec<_>>>()?;
    let config = json!({
        "apiVersion": "apiserver.config.k8s.io/v1alpha1",
        "kind": "AuthenticationConfiguration",
        "jwt": jwt,
    });
    let data = config_map.data.get_or_insert_default();
    data.insert("auth.json".to_owned(), config.to_string());
    Ok(())
}

fn requested<'a>(context: &Context<'a>) -> Option<&'a AuthenticationConfiguration> {
    let configuration = context.spec().configuration.as_ref()?;
    configuration.authentication.as_ref()
}

/// The provider's authorities, PEM, unless those of the system are trusted. Without an object that is set, the API server
/// would trust others than the user wants.
fn authorities(context: &Context<'_>, provider: &OidcProvider) -> Result<Option<String>> {
    let reference = provider.issuer.issuer_certificate_authority.as_ref();
    let reference = reference.filter(|reference| !reference.name.is_empty());
    reference
        .map(|reference| config_value(context, &reference.name, "ca-bundle.crt"))
        .transpose()
}

fn config_value(context: &Context<'_>, name: &str, key: &str) -> Result<String> {
    let found = context.objects.config_value(name, key);
    found.ok_or_else(|| Error::missing(format!("ConfigMap {name}"), format!("key {key}")))
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
    mappings["uid"] = claims
        .uid
        .as_ref()
        .map_or_else(|| json!({ "claim": SUBJECT }), |uid| json!(uid));
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

/// OAuth server metadata for clients: that of the user, or that of the guest's own server.
pub(super) fn metadata(context: &Context<'_>, config_map: &mut ConfigMap) -> Result<()> {
    let chosen = requested(context).and_then(|it| it.oauth_metadata.as_ref());
    let text = match chosen.filter(|reference| !reference.name.is_empty()) {
        Some(reference) => config_value(context, &reference.name, "oauthMetadata")?,
        None => own_metadata(context).to_string(),
    };
    let data = config_map.data.get_or_insert_default();
    data.insert("oauthMetadata.json".to_owned(), text);
    Ok(())
}

fn own_metadata(context: &Context<'_>) -> Value {
    let server = context.infra.oauth.url();
    json!({
        "issuer": server,
        "authorization_endpoint": format!("{server}/oauth/authorize"),
        "token_endpoint": format!("{server}/oauth/token"),
        "scopes_supported": [
            "user:check-access", "user:full", "user:info", "user:list-projects", "user:list-scoped-projects",
        ],
        "response_types_supported": ["code", "token"],
        "grant_types_supported": ["authorization_code", "implicit"],
        "code_challenge_methods_supported": ["plain", "S256"],
    })
}

#[cfg(test)]
mod tests {
    use control_plane_component::facts::Infra;
    use control_plane_component::settings::Settings;
    use control_plane_component::{Objects, Predicates, Release};

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
    fn users_have_the_uid_of_their_subject_by_default() {
        let provider = provider(json!({
            "name": "sso",
            "issuer": { "issuerURL": "https://login.example.com", "audiences": ["cluster"] },
            "claimMappings": { "username": { "claim": "email" } },
        }));
        assert_eq!(mappings(&provider)["uid"], json!({ "claim": "sub" }));
    }

    /// Renders a ConfigMap for this authentication, with the objects of the user.
    fn rendered(
        authentication: &Value,
        objects: &[Value],
        adapt: fn(&Context<'_>, &mut ConfigMap) -> Result<()>,
    ) -> Result<ConfigMap> {
        let text = include_str!(
            "../../../../control-plane-component/tests/data/base/hosted-control-plane.yaml"
        );
        let mut hcp: api::hypershift::v1beta1::HostedControlPlane =
            serde_saphyr::from_str(text).unwrap();
        let configuration = json!({ "authentication": authentication });
        hcp.spec.configuration = serde_json::from_value(configuration).unwrap();
        let release = Release::default();
        let mut config_map = ConfigMap::default();
        let context = Context {
            hcp: &hcp,
            release: &release,
            user_release: &release,
            infra: &Infra::default(),
            objects: &objects.iter().cloned().collect::<Objects>(),
            settings: &Settings::new("own"),
            predicates: Predicates::Evaluated,
        };
        adapt(&context, &mut config_map).map(|()| config_map)
    }

    fn config_map(name: &str, key: &str, text: &str) -> Value {
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { key: text } })
    }

    #[test]
    fn authorities_of_a_provider_are_required_if_they_are_set() {
        let authentication = |type_: &str, name: &str| {
            json!({ "type": type_, "oidcProviders": [{
                "name": "sso",
                "issuer": {
                    "issuerURL": "https://login.example.com", "audiences": ["cluster"],
                    "issuerCertificateAuthority": { "name": name },
                },
                "claimMappings": { "username": { "claim": "email" } },
            }] })
        };
        let objects = [
            config_map("sso-ca", "ca-bundle.crt", "PEM"),
            config_map("other-key", "ca.crt", "PEM"),
        ];
        for (type_, name, expected) in [
            ("OIDC", "sso-ca", Ok(json!("PEM"))),
            ("OIDC", "", Ok(Value::Null)),
            (
                "OIDC",
                "absent",
                Err("waiting for ConfigMap absent with key ca-bundle.crt"),
            ),
            (
                "OIDC",
                "other-key",
                Err("waiting for ConfigMap other-key with key ca-bundle.crt"),
            ),
            // No provider is used.
            ("IntegratedOAuth", "absent", Ok(Value::Null)),
        ] {
            let found = rendered(&authentication(type_, name), &objects, config);
            let found = found.map_err(|error| error.to_string()).map(|config_map| {
                let text = &config_map.data.unwrap()["auth.json"];
                let config: Value = serde_json::from_str(text).unwrap();
                config["jwt"][0]["issuer"]["certificateAuthority"].clone()
            });
            assert_eq!(found, expected.map_err(str::to_owned), "{type_} {name}");
        }
    }

    #[test]
    fn metadata_of_the_user_replaces_that_of_the_oauth_server() {
        let chosen = |name: &str| json!({ "oauthMetadata": { "name": name } });
        let objects = [
            config_map("mine", "oauthMetadata", "{}"),
            config_map("other-key", "oauthMetadata.json", "{}"),
        ];
        let text = |name: &str| {
            let found = rendered(&chosen(name), &objects, metadata);
            let found = found.map_err(|error| error.to_string());
            found.map(|config_map| config_map.data.unwrap()["oauthMetadata.json"].clone())
        };
        assert_eq!(text("mine").as_deref(), Ok("{}"));
        assert!(text("").unwrap().contains("/oauth/token"));
        for name in ["absent", "other-key"] {
            let expected = format!("waiting for ConfigMap {name} with key oauthMetadata");
            assert_eq!(text(name), Err(expected));
        }
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
