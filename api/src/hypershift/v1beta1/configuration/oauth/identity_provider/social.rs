//! Identity providers that redirect users to their own login page.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hypershift::v1beta1::references::NameReference;
use crate::schema::atomic_list;

/// GitHub, or GitHub Enterprise.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitHubIdentityProvider {
    /// ID of the OAuth application that is registered at GitHub.
    #[serde(rename = "clientID", skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// Secret with the application's secret, under the key `clientSecret`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<NameReference>,
    /// Organizations; users must be a member of one of them. It excludes `teams`; with neither,
    /// everybody at GitHub can log in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub organizations: Vec<String>,
    /// Teams, as `<organization>/<team>`, users must be a member of one of them. It excludes
    /// `organizations`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub teams: Vec<String>,
    /// Host name of GitHub Enterprise. Without it, it is github.com.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// ConfigMap with the certificate authorities of GitHub Enterprise, under the key `ca.crt`.
    /// Without it the system's are trusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<NameReference>,
}

/// GitLab.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitLabIdentityProvider {
    /// ID of the OAuth application that is registered at GitLab.
    #[serde(rename = "clientID", skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// Secret with the application's secret, under the key `clientSecret`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<NameReference>,
    /// URL of GitLab, for example `https://gitlab.com`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// ConfigMap with GitLab's certificate authorities, under the key `ca.crt`. Without it the
    /// system's are trusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<NameReference>,
}

/// Google.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GoogleIdentityProvider {
    /// ID of the OAuth client that is registered at Google.
    #[serde(rename = "clientID", skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// Secret with the client's secret, under the key `clientSecret`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<NameReference>,
    /// Domain of Google Workspace that users must belong to. Without it, all users with a Google
    /// account can log in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosted_domain: Option<String>,
}

/// An OIDC provider behind the OAuth server of OpenShift.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenIdIdentityProvider {
    /// ID of the client that is registered at the provider.
    #[serde(rename = "clientID", skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// Secret with the client's secret, under the key `clientSecret`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<NameReference>,
    /// ConfigMap with the provider's certificate authorities, under the key `ca.crt`. Without it
    /// the system's are trusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<NameReference>,
    /// Scopes to request in addition to `openid`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra_scopes: Vec<String>,
    /// Parameters to add when users are redirected to the provider.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra_authorize_parameters: BTreeMap<String, String>,
    /// URL of the provider. It begins with `https://` and has no query and no fragment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// Which claims say who a person is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claims: Option<OpenIdClaims>,
}

/// Claims that say who a person is. Of each list, the first that has a value counts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenIdClaims {
    /// Claims with the name that the user should have. Without one it is the claim `sub`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = atomic_list)]
    pub preferred_username: Vec<String>,
    /// Claims with the name to show.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = atomic_list)]
    pub name: Vec<String>,
    /// Claims with the address of e-mail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = atomic_list)]
    pub email: Vec<String>,
    /// Claims with the groups that the user is put into at each login.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(inner(length(min = 1)), transform = atomic_list)]
    pub groups: Vec<String>,
}
