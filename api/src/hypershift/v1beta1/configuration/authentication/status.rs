//! What became of the configuration of authentication.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hypershift::v1beta1::references::NameReference;
use crate::schema::{self, list_map, set};

/// What became of the OpenShift configuration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigurationStatus {
    /// What became of the configuration of authentication.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authentication: Option<AuthenticationStatus>,
}

/// What became of the configuration of authentication.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuthenticationStatus {
    /// ConfigMap with the metadata of the OAuth server of OpenShift, under the key `oauthMetadata`,
    /// in the hosted cluster's namespace `openshift-config-managed`.
    #[serde(
        rename = "integratedOAuthMetadata",
        skip_serializing_if = "Option::is_none"
    )]
    pub integrated_oauth_metadata: Option<NameReference>,
    /// The clients of components that can log users in with an OIDC provider.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), transform = list_map(["componentNamespace", "componentName"]))]
    pub oidc_clients: Vec<OidcClientStatus>,
}

/// How a component logs users in with an OIDC provider.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OidcClientStatus {
    /// Name of the component.
    #[schemars(length(min = 1, max = 256))]
    pub component_name: String,
    /// Namespace of the component.
    #[schemars(length(min = 1, max = 63))]
    pub component_namespace: String,
    /// Clients that the component uses now.
    #[serde(
        rename = "currentOIDCClients",
        default,
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(transform = list_map(["issuerURL", "clientID"]))]
    pub current_oidc_clients: Vec<OidcClientReference>,
    /// Service accounts that need to read the client's secret, as
    /// `system:serviceaccount:<namespace>:<name>`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 5),
        inner(length(min = 1, max = 512), regex(pattern = r"^system:serviceaccount:[a-z0-9]([-a-z0-9]*[a-z0-9])?:[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")),
        transform = set,
    )]
    pub consuming_users: Vec<String>,
    /// Whether the component could be set up: `Available`, `Degraded`, `Progressing`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Condition>", transform = list_map(["type"]))]
    pub conditions: Vec<Condition>,
}

/// A client at an OIDC provider.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OidcClientReference {
    /// Name of the provider in `spec.configuration.authentication.oidcProviders`.
    #[schemars(length(min = 1))]
    pub oidc_provider_name: String,
    /// URL of the issuer.
    #[serde(rename = "issuerURL")]
    #[schemars(regex(pattern = r"^https:\/\/[^\s]"))]
    pub issuer_url: String,
    /// ID of the client.
    #[serde(rename = "clientID")]
    #[schemars(length(min = 1))]
    pub client_id: String,
}
