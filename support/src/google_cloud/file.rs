//! Files with credentials, in the formats of Google's programs. Problems never quote what a file has.

use std::fmt;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::Source;
use super::assertion::Key;
use crate::rest::Error;

/// Where tokens are requested, if a file does not say it.
const TOKEN_URL: &str = "https://oauth2.googleapis.com/token";

/// A service account with a key.
#[derive(Debug, Clone)]
pub(super) struct ServiceAccount {
    pub(super) email: String,
    pub(super) key: Key,
    pub(super) key_id: Option<String>,
    pub(super) token_url: String,
}

/// A user who has logged in.
#[derive(Clone)]
pub(super) struct AuthorizedUser {
    pub(super) client_id: String,
    pub(super) client_secret: String,
    pub(super) refresh_token: String,
    pub(super) token_url: String,
}

/// Who a token of an identity provider stands for.
#[derive(Debug, Clone)]
pub(super) struct ExternalAccount {
    /// The provider, in the pool that trusts it.
    pub(super) audience: String,
    pub(super) subject_token_type: String,
    pub(super) token_url: String,
    /// Where there are tokens of a service account; without it, the exchanged token is used.
    pub(super) impersonation_url: Option<String>,
    /// The file with the provider's token.
    file: PathBuf,
    /// The field with the token, if the file is JSON.
    field: Option<String>,
}

/// The credentials of a file, and the project whose quota requests count against.
pub(super) fn parse(text: &str) -> Result<(Source, Option<String>), String> {
    let document: Value = serde_json::from_str(text).map_err(|_| "it is not JSON".to_owned())?;
    let source = match document["type"].as_str().unwrap_or_default() {
        "service_account" => Source::ServiceAccount(ServiceAccount {
            email: required(&document, "client_email")?,
            key: Key::parse(&required(&document, "private_key")?)?,
            key_id: optional(&document, "private_key_id"),
            token_url: optional(&document, "token_uri").unwrap_or_else(|| TOKEN_URL.to_owned()),
        }),
        "authorized_user" => Source::AuthorizedUser(AuthorizedUser {
            client_id: required(&document, "client_id")?,
            client_secret: required(&document, "client_secret")?,
            refresh_token: required(&document, "refresh_token")?,
            token_url: optional(&document, "token_uri").unwrap_or_else(|| TOKEN_URL.to_owned()),
        }),
        "external_account" => Source::ExternalAccount(external(&document)?),
        other => {
            return Err(format!(
                "its type is {other:?}: write credentials of type service_account, authorized_user or external_account"
            ));
        }
    };
    Ok((source, optional(&document, "quota_project_id")))
}

fn external(document: &Value) -> Result<ExternalAccount, String> {
    let source = &document["credential_source"];
    let Some(file) = optional(source, "file") else {
        return Err(
            "its credential_source has no file: tokens of URLs, programs and AWS are not supported"
                .to_owned(),
        );
    };
    let format = &source["format"];
    let field = match format["type"].as_str() {
        None | Some("text") => None,
        Some("json") => Some(required(format, "subject_token_field_name")?),
        Some(_) => {
            return Err("the format of its credential_source is neither text nor json".to_owned());
        }
    };
    Ok(ExternalAccount {
        audience: required(document, "audience")?,
        subject_token_type: required(document, "subject_token_type")?,
        token_url: required(document, "token_url")?,
        impersonation_url: optional(document, "service_account_impersonation_url"),
        file: file.into(),
        field,
    })
}

fn optional(document: &Value, field: &str) -> Option<String> {
    let text = document[field].as_str().filter(|text| !text.is_empty());
    text.map(str::to_owned)
}

fn required(document: &Value, field: &str) -> Result<String, String> {
    optional(document, field).ok_or_else(|| format!("it has no {field}"))
}

// === impl ExternalAccount ===

impl ExternalAccount {
    /// The provider's token. It is read each time: kubelet replaces it.
    pub(super) fn subject_token(&self) -> Result<String, Error> {
        let invalid =
            |problem: &str| Error::Credentials(format!("{}: {problem}", self.file.display()));
        let text = fs::read_to_string(&self.file).map_err(|error| invalid(&error.to_string()))?;
        let token = match &self.field {
            None => Some(text.trim().to_owned()),
            Some(field) => {
                let document = serde_json::from_str::<Value>(&text).unwrap_or_default();
                optional(&document, field)
            }
        };
        let token = token.filter(|token| !token.is_empty());
        token.ok_or_else(|| invalid("there is no token in it"))
    }
}

// === impl AuthorizedUser ===

impl fmt::Debug for AuthorizedUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthorizedUser")
            .field("client_id", &self.client_id)
            .finish_non_exhaustive()
    }
}
