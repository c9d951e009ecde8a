//! OIDC providers, and the clients that log in with them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hypershift::v1beta1::configuration::authentication::claims::{
    TokenClaimMappings, TokenClaimValidationRule, TokenUserValidationRule,
};
use crate::hypershift::v1beta1::references::NameReference;
use crate::schema::{atomic_list, list_map, rule, set};

/// An OIDC provider that issues accepted tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OidcProvider {
    /// Name of the provider, of your own choice.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Who issues the tokens.
    pub issuer: TokenIssuer,
    /// Clients with which components of the cluster, such as the console, log users in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), transform = list_map(["componentNamespace", "componentName"]))]
    pub oidc_clients: Vec<OidcClientConfig>,
    /// How a user of Kubernetes is made from the claims of a token.
    pub claim_mappings: TokenClaimMappings,
    /// Conditions that the claims of a token must meet; all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = atomic_list)]
    pub claim_validation_rules: Vec<TokenClaimValidationRule>,
    /// Conditions that the user who was made from the claims must meet; all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 64), transform = list_map(["expression"]))]
    pub user_validation_rules: Vec<TokenUserValidationRule>,
}

/// Who issues tokens.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    transform = rule(
        "!has(self.discoveryURL) || self.discoveryURL.size() == 0 || \
         self.issuerURL.size() == 0 || self.issuerURL.find('^.+[^/]') != \
         self.discoveryURL.find('^.+[^/]')",
        "discoveryURL must differ from issuerURL; remove it if both are the same"
    ),
)]
pub struct TokenIssuer {
    /// URL of the issuer, exactly as tokens have it in their claim `iss`. It begins with
    /// `https://`.
    #[serde(rename = "issuerURL")]
    #[schemars(
        length(min = 1, max = 512),
        transform = rule(
            "isURL(self)",
            "issuerURL must be a URL such as https://login.example.com"
        ),
        transform = rule(
            "isURL(self) && url(self).getScheme() in ['https']",
            "the issuer's URL must begin with https://"
        ),
        transform = rule(
            "isURL(self) && url(self).getQuery().size() == 0",
            "the issuer's URL must not have a query; remove what follows the question mark"
        ),
        transform = rule(
            "!self.matches('#.')",
            "the issuer's URL must not have a fragment; remove what follows the #"
        ),
        transform = rule(
            "!self.matches('@')",
            "the issuer's URL must not have a user or password; remove what stands before the @"
        ),
    )]
    pub issuer_url: String,
    /// Audiences of tokens that are accepted; a token must have one of them. The client IDs of
    /// `oidcClients` have to be among them.
    #[schemars(length(min = 1, max = 10), inner(length(min = 1)), transform = set)]
    pub audiences: Vec<String>,
    /// ConfigMap with the certificate authorities of the issuer, under the key `ca-bundle.crt`.
    /// Without it the system's are trusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer_certificate_authority: Option<NameReference>,
    /// URL of the issuer's discovery document, if it is not found below `issuerURL`. It begins with
    /// `https://`.
    #[serde(rename = "discoveryURL", skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 2048),
        transform = rule(
            "isURL(self)",
            "discoveryURL must be a URL such as \
             https://login.example.com/.well-known/openid-configuration"
        ),
        transform = rule(
            "url(self).getScheme() in ['https']",
            "the discovery URL must begin with https://"
        ),
        transform = rule(
            "url(self).getQuery() == {}",
            "the discovery URL must not have a query; remove what follows the question mark"
        ),
        transform = rule(
            "!self.contains('#')",
            "the discovery URL must not have a fragment; remove the # and what follows it"
        ),
        transform = rule(
            "!self.matches('^https://.+:.+@.+/')",
            "the discovery URL must not have a user or password; remove what stands before the @"
        ),
    )]
    pub discovery_url: Option<String>,
}

/// A client with which a component logs users in.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OidcClientConfig {
    /// Name of the component, for example `console`.
    #[schemars(length(min = 1, max = 256))]
    pub component_name: String,
    /// Namespace of the component, for example `openshift-console`.
    #[schemars(length(min = 1, max = 63))]
    pub component_namespace: String,
    /// ID of the client at the provider.
    #[serde(rename = "clientID")]
    #[schemars(length(min = 1))]
    pub client_id: String,
    /// Secret with the client's secret, under the key `clientSecret`. Clients that keep no secret
    /// have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<NameReference>,
    /// Scopes to request in addition to `openid`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = set)]
    pub extra_scopes: Vec<String>,
}
