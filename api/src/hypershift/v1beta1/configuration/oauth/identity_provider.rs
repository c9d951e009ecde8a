//! Identity providers, which verify the passwords of users.

pub mod directory;
pub mod social;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hypershift::v1beta1::configuration::oauth::identity_provider::directory::{
    BasicAuthIdentityProvider, HtpasswdIdentityProvider, KeystoneIdentityProvider,
    LdapIdentityProvider, RequestHeaderIdentityProvider,
};
use crate::hypershift::v1beta1::configuration::oauth::identity_provider::social::{
    GitHubIdentityProvider, GitLabIdentityProvider, GoogleIdentityProvider, OpenIdIdentityProvider,
};

/// An identity provider, which verifies the passwords of users.
/// Fill in the member that belongs to `type`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IdentityProvider {
    /// Name of the provider. It becomes part of the identities of users, so it must not be changed once
    /// they have logged in; it takes no slash and no colon.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What happens when a person logs in for the first time: `claim` makes a user unless one of
    /// that name exists, `add` joins the identity to a user of that name, `lookup` takes users that
    /// you made.
    /// Without a value it is `claim`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mapping_method: Option<String>,
    /// What kind of provider it is: `BasicAuth`, `GitHub`, `GitLab`, `Google`, `HTPasswd`,
    /// `Keystone`, `LDAP`, `OpenID` or `RequestHeader`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    /// A server that verifies HTTP basic authentication, when `type` is `BasicAuth`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub basic_auth: Option<BasicAuthIdentityProvider>,
    /// GitHub, when `type` is `GitHub`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub github: Option<GitHubIdentityProvider>,
    /// GitLab, when `type` is `GitLab`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gitlab: Option<GitLabIdentityProvider>,
    /// Google, when `type` is `Google`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub google: Option<GoogleIdentityProvider>,
    /// A file of names and hashed passwords, when `type` is `HTPasswd`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub htpasswd: Option<HtpasswdIdentityProvider>,
    /// Keystone of OpenStack, when `type` is `Keystone`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keystone: Option<KeystoneIdentityProvider>,
    /// An LDAP directory, when `type` is `LDAP`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ldap: Option<LdapIdentityProvider>,
    /// An OIDC provider, when `type` is `OpenID`.
    #[serde(rename = "openID", skip_serializing_if = "Option::is_none")]
    pub open_id: Option<OpenIdIdentityProvider>,
    /// A proxy that authenticates users and sends their identity in headers, when `type` is
    /// `RequestHeader`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_header: Option<RequestHeaderIdentityProvider>,
}
