//! Identity providers that look users up: files, directories, servers, proxies.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hypershift::v1beta1::references::NameReference;

/// A server that verifies HTTP basic authentication.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BasicAuthIdentityProvider {
    /// URL of the server. It is called with a user's name and password, and responds with the user that it
    /// is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// ConfigMap with the server's certificate authorities, under the key `ca.crt`. Without it the
    /// system's are trusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<NameReference>,
    /// Secret with a client certificate for the server, under the key `tls.crt`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_client_cert: Option<NameReference>,
    /// Secret with the key of the client certificate, under the key `tls.key`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_client_key: Option<NameReference>,
}

/// A file of names and hashed passwords.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HtpasswdIdentityProvider {
    /// Secret with the file, under the key `htpasswd`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_data: Option<NameReference>,
}

/// Keystone of OpenStack.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeystoneIdentityProvider {
    /// Keystone domain of the users.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain_name: Option<String>,
    /// URL of Keystone's API, version 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// ConfigMap with Keystone's certificate authorities, under the key `ca.crt`. Without it the
    /// system's are trusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<NameReference>,
    /// Secret with a client certificate for Keystone, under the key `tls.crt`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_client_cert: Option<NameReference>,
    /// Secret with the key of the client certificate, under the key `tls.key`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_client_key: Option<NameReference>,
}

/// An LDAP directory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LdapIdentityProvider {
    /// Where and how users are searched, as an RFC 2255 URL: `ldap://host:port/<base
    /// DN>?<attribute>?<scope>?<filter>`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Whether the connection is left without TLS. With `ldaps` in the URL there is no need for it.
    /// Without a value TLS is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub insecure: Option<bool>,
    /// Name to log in to the directory with for the search. Without it the search is anonymous.
    #[serde(rename = "bindDN", skip_serializing_if = "Option::is_none")]
    pub bind_dn: Option<String>,
    /// Secret with the password for `bindDN`, under the key `bindPassword`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bind_password: Option<NameReference>,
    /// ConfigMap with the directory's certificate authorities, under the key `ca.crt`. Without it
    /// the system's are trusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<NameReference>,
    /// Which attributes say who a person is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attributes: Option<LdapAttributeMapping>,
}

/// Attributes of an LDAP directory that say who a person is. Of each list, the first that has a
/// value counts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LdapAttributeMapping {
    /// Attributes with the person's identity, which never changes; there must be one, for example
    /// `dn`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub id: Vec<String>,
    /// Attributes with the name that the user should have, for example `uid`. Without one it is the
    /// identity.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preferred_username: Vec<String>,
    /// Attributes with the name to show, for example `cn`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub name: Vec<String>,
    /// Attributes with the address of e-mail, for example `mail`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub email: Vec<String>,
}

/// A proxy that authenticates users and sends their identity in headers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestHeaderIdentityProvider {
    /// URL of the proxy for browsers; `${url}` and `${query}` are replaced with the original URL and its
    /// query.
    #[serde(rename = "loginURL", skip_serializing_if = "Option::is_none")]
    pub login_url: Option<String>,
    /// URL of the proxy for clients that respond to authentication challenges, such as command line
    /// tools; `${url}` and `${query}` are replaced with the original URL and its query.
    #[serde(rename = "challengeURL", skip_serializing_if = "Option::is_none")]
    pub challenge_url: Option<String>,
    /// ConfigMap with the certificate authorities that signed the proxy's client certificate, under
    /// the key `ca.crt`. It is required: without it any client could impersonate the proxy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<NameReference>,
    /// Common names that the proxy's client certificate may have; nothing listed means any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub client_common_names: Vec<String>,
    /// Headers with the user's identity; the first one in the request counts. At least one is required.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<String>,
    /// Headers with the name that the user should have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preferred_username_headers: Vec<String>,
    /// Headers with the name to show.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub name_headers: Vec<String>,
    /// Headers with the address of e-mail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub email_headers: Vec<String>,
}
