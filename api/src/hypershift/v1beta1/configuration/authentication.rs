//! Who may log in to a hosted cluster.

pub mod claims;
pub mod provider;
pub mod status;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hypershift::v1beta1::configuration::authentication::provider::OidcProvider;
use crate::hypershift::v1beta1::references::NameReference;
use crate::schema::{atomic_list, list_map};

/// Who may log in to a hosted cluster, and how it is verified.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuthenticationConfiguration {
    /// How users log in. Without a value it is the OAuth server of OpenShift.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<AuthenticationType>,
    /// ConfigMap with metadata of an external OAuth server, under the key `oauthMetadata`, which
    /// the API server then publishes. It is ignored while the OAuth server of OpenShift is in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oauth_metadata: Option<NameReference>,
    /// A remote service that verifies bearer tokens. It can be used with type `None` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook_token_authenticator: Option<WebhookTokenAuthenticator>,
    /// Has no effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = atomic_list)]
    pub webhook_token_authenticators: Vec<DeprecatedWebhookTokenAuthenticator>,
    /// Not used for hosted clusters: `spec.issuerURL` is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account_issuer: Option<String>,
    /// The OIDC provider that issues the tokens that the API server accepts, when `type` is `OIDC`. There can be
    /// one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1), transform = list_map(["name"]))]
    pub oidc_providers: Vec<OidcProvider>,
}

/// A remote service that verifies bearer tokens.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookTokenAuthenticator {
    /// Secret with the kubeconfig for the service, under the key `kubeConfig`.
    pub kube_config: NameReference,
}

/// An entry without effect.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeprecatedWebhookTokenAuthenticator {
    /// Secret with a kubeconfig, under the key `kubeConfig`. It is not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kube_config: Option<NameReference>,
}

/// How users log in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum AuthenticationType {
    /// As if nothing were said: the OAuth server of OpenShift.
    #[serde(rename = "")]
    Unset,
    /// By what the cluster's owner sets up.
    None,
    /// By the OAuth server of OpenShift, with the identity providers of `spec.configuration.oauth`.
    IntegratedOAuth,
    /// By tokens of an OIDC provider; the OAuth server of OpenShift is not installed.
    #[serde(rename = "OIDC")]
    Oidc,
}
