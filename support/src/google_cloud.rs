//! Tokens of Google Cloud, and the endpoints of its APIs.
//!
//! [`Credentials::find`] looks where Google's own programs look (application default credentials), so that no flags are needed.

mod assertion;
mod exchange;
mod file;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use self::exchange::{impersonate, metadata, post_form, token_of};
use self::file::{AuthorizedUser, ExternalAccount, ServiceAccount};
use crate::outbound::Http;
use crate::rest::{Error, Token, TokenSource};

/// Compute Engine.
pub const COMPUTE: &str = "https://compute.googleapis.com/compute/v1";
/// Identity and Access Management: service accounts, workload identity pools.
pub const IAM: &str = "https://iam.googleapis.com/v1";
/// Resource Manager: projects and their policies.
pub const RESOURCE_MANAGER: &str = "https://cloudresourcemanager.googleapis.com/v1";
/// Cloud DNS.
pub const DNS: &str = "https://dns.googleapis.com/dns/v1";

/// What tokens are for: all APIs, as far as policies permit.
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
/// Where the metadata server is: by its address, because its name would be resolved by others.
const METADATA_SERVER: &str = "169.254.169.254";
/// The file with a user's credentials in the directory of the tool `gcloud`.
const USER_FILE: &str = "application_default_credentials.json";
/// The variable with the directory that has this directory, and where it is in there.
const PARENT: &str = if cfg!(windows) { "APPDATA" } else { "HOME" };
const SUBDIRECTORY: &str = if cfg!(windows) {
    "gcloud"
} else {
    ".config/gcloud"
};

/// A variable of the environment.
pub type Variable<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Credentials. Their secrets are never shown.
#[derive(Debug, Clone)]
pub struct Credentials {
    source: Source,
    quota_project: Option<String>,
}

/// Where tokens come from.
#[derive(Debug, Clone)]
enum Source {
    /// A service account with a key.
    ServiceAccount(ServiceAccount),
    /// A user who has logged in.
    AuthorizedUser(AuthorizedUser),
    /// A token of an identity provider that a workload identity pool trusts.
    ExternalAccount(ExternalAccount),
    /// The service account of the machine.
    Metadata {
        /// Host of the metadata server, with a port if it is not 80.
        host: String,
    },
}

// === impl Credentials ===

impl Credentials {
    /// The credentials of the environment: of the file that `GOOGLE_APPLICATION_CREDENTIALS` names, of the user, or of the
    /// machine.
    pub fn find(variable: Variable<'_>) -> Result<Self, Error> {
        let named = variable("GOOGLE_APPLICATION_CREDENTIALS").map(PathBuf::from);
        let file = named.or_else(|| user_file(variable).filter(|path| path.is_file()));
        let mut found = match file {
            Some(path) => Self::of_file(&path)?,
            None => Self {
                source: Source::Metadata {
                    host: variable("GCE_METADATA_HOST")
                        .unwrap_or_else(|| METADATA_SERVER.to_owned()),
                },
                quota_project: None,
            },
        };
        if let Some(project) = variable("GOOGLE_CLOUD_QUOTA_PROJECT") {
            found.quota_project = Some(project);
        }
        Ok(found)
    }

    /// The credentials of a file.
    pub fn of_file(path: &Path) -> Result<Self, Error> {
        let invalid = |problem: &str| Error::Credentials(format!("{}: {problem}", path.display()));
        let text = fs::read_to_string(path).map_err(|error| invalid(&error.to_string()))?;
        let (source, quota_project) = file::parse(&text).map_err(|problem| invalid(&problem))?;
        Ok(Self {
            source,
            quota_project,
        })
    }

    /// The project whose quota requests count against, where credentials of a user name one: a header `x-goog-user-project` of
    /// requests, without which some APIs refuse users.
    pub fn quota_project(&self) -> Option<&str> {
        self.quota_project.as_deref()
    }
}

impl TokenSource for Credentials {
    async fn load(&self, http: &Http) -> Result<Token, Error> {
        match &self.source {
            Source::ServiceAccount(account) => account.load(http).await,
            Source::AuthorizedUser(user) => user.load(http).await,
            Source::ExternalAccount(account) => account.load(http).await,
            Source::Metadata { host } => metadata(http, host).await,
        }
    }
}

// === impl ServiceAccount ===

impl ServiceAccount {
    async fn load(&self, http: &Http) -> Result<Token, Error> {
        let now = Timestamp::now().as_second();
        let assertion = self
            .assertion(now)
            .map_err(|problem| Error::Credentials(format!("{}: {problem}", self.email)))?;
        let form = [
            ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
            ("assertion", assertion.as_str()),
        ];
        token_of(
            &self.token_url,
            &post_form(http, &self.token_url, &form).await?,
        )
    }
}

// === impl AuthorizedUser ===

impl AuthorizedUser {
    async fn load(&self, http: &Http) -> Result<Token, Error> {
        let form = [
            ("grant_type", "refresh_token"),
            ("client_id", self.client_id.as_str()),
            ("client_secret", self.client_secret.as_str()),
            ("refresh_token", self.refresh_token.as_str()),
        ];
        token_of(
            &self.token_url,
            &post_form(http, &self.token_url, &form).await?,
        )
    }
}

// === impl ExternalAccount ===

impl ExternalAccount {
    /// Exchanges the provider's token, and then the exchanged token for one of the service account.
    async fn load(&self, http: &Http) -> Result<Token, Error> {
        let subject = self.subject_token()?;
        let form = [
            (
                "grant_type",
                "urn:ietf:params:oauth:grant-type:token-exchange",
            ),
            ("audience", self.audience.as_str()),
            ("scope", SCOPE),
            (
                "requested_token_type",
                "urn:ietf:params:oauth:token-type:access_token",
            ),
            ("subject_token", subject.as_str()),
            ("subject_token_type", self.subject_token_type.as_str()),
        ];
        let exchanged = token_of(
            &self.token_url,
            &post_form(http, &self.token_url, &form).await?,
        )?;
        match &self.impersonation_url {
            Some(url) => impersonate(http, url, &exchanged).await,
            None => Ok(exchanged),
        }
    }
}

/// Where the tool `gcloud` stores the credentials of its user.
fn user_file(variable: Variable<'_>) -> Option<PathBuf> {
    let directory = variable("CLOUDSDK_CONFIG").map(PathBuf::from);
    let directory = directory.or_else(|| Some(Path::new(&variable(PARENT)?).join(SUBDIRECTORY)))?;
    Some(directory.join(USER_FILE))
}
