//! Tokens of Microsoft Entra ID, and the endpoints of Azure.
//!
//! A [`Source`] is an identity and the scope that its tokens are for: [`source`] finds the identity in a file or in the
//! environment, as programs of Azure do.

mod assertion;
mod cloud;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use form_urlencoded::Serializer;
use http::Request;
use serde::Deserialize;
use serde_json::Value;

use crate::outbound::Http;
use crate::rest::{Error, Token, TokenSource};
use assertion::Certificate;

pub use cloud::{Cloud, Endpoints};

/// What the scopes of applications end with: all permissions that the identity has.
const ALL: &str = ".default";
/// The metadata service of a virtual machine.
const METADATA: &str = "http://169.254.169.254/metadata/identity/oauth2/token";
const ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// A variable of the environment.
pub type Variable<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Which credentials a file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum AuthType {
    /// JSON with tenantId, clientId and clientSecret.
    ClientSecret,
    /// JSON of the managed identity data plane, with a certificate.
    ManagedIdentity,
}

/// Where tokens come from, and what they are for.
#[derive(Clone, PartialEq, Eq)]
pub struct Source {
    identity: Identity,
    /// For example `https://management.azure.com/.default`.
    scope: String,
}

/// Who requests tokens.
#[derive(Clone, PartialEq, Eq)]
enum Identity {
    /// An application of a tenant.
    Application {
        /// URL of the authority.
        authority: String,
        tenant: String,
        client: String,
        proof: Proof,
    },
    /// The identity of the machine.
    Machine {
        /// URL of its metadata service.
        metadata: String,
        client: Option<String>,
    },
}

/// What an application authenticates with.
#[derive(Clone, PartialEq, Eq)]
enum Proof {
    Secret(String),
    /// A token of a service account.
    TokenFile(PathBuf),
    Certificate(Certificate),
}

/// A file for `client-secret`.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ClientSecret {
    tenant_id: String,
    client_id: String,
    #[serde(rename = "clientSecret")]
    secret: String,
}

/// A file for `managed-identity`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ManagedIdentity {
    authentication_endpoint: String,
    tenant_id: String,
    client_id: String,
    client_secret: String,
}

/// Finds credentials: in the file, or without a file in the environment as programs of Azure do. Tokens are for `scope`.
pub fn source(
    file: Option<&Path>,
    auth_type: AuthType,
    scope: &str,
    variable: Variable<'_>,
) -> Result<Source, Error> {
    let Some(file) = file else {
        return Ok(of_environment(scope, variable));
    };
    let bytes = read(file)?;
    if bytes.trim_ascii().is_empty() {
        return Ok(of_environment(scope, variable));
    }
    let invalid = |problem: &str| Error::Credentials(format!("{}: {problem}", file.display()));
    match auth_type {
        AuthType::ClientSecret => {
            let expected = "expected JSON with tenantId, clientId and clientSecret";
            let file: ClientSecret =
                serde_json::from_slice(&bytes).map_err(|_| invalid(expected))?;
            let parts = [&file.tenant_id, &file.client_id, &file.secret];
            if parts.iter().any(|part| part.is_empty()) {
                return Err(invalid(expected));
            }
            Ok(Source::of_secret(
                &authority(variable),
                &file.tenant_id,
                &file.client_id,
                &file.secret,
                scope,
            ))
        }
        AuthType::ManagedIdentity => {
            let expected = "expected JSON with tenant_id, client_id and client_secret";
            let file: ManagedIdentity =
                serde_json::from_slice(&bytes).map_err(|_| invalid(expected))?;
            if file.tenant_id.is_empty() || file.client_id.is_empty() {
                return Err(invalid(expected));
            }
            let certificate = Certificate::read(&file.client_secret).map_err(&invalid)?;
            let endpoint = Some(file.authentication_endpoint).filter(|url| !url.is_empty());
            let endpoint = endpoint.unwrap_or_else(|| authority(variable));
            Ok(Source {
                identity: Identity::Application {
                    authority: endpoint.trim_end_matches('/').to_owned(),
                    tenant: file.tenant_id,
                    client: file.client_id,
                    proof: Proof::Certificate(certificate),
                },
                scope: scope.to_owned(),
            })
        }
    }
}

/// A secret, the token of a service account, or the identity of the machine.
pub fn of_environment(scope: &str, variable: Variable<'_>) -> Source {
    let filled = |name: &str| variable(name).filter(|value| !value.is_empty());
    let client = filled("AZURE_CLIENT_ID");
    let secret = filled("AZURE_CLIENT_SECRET").map(Proof::Secret);
    let token = || filled("AZURE_FEDERATED_TOKEN_FILE").map(|file| Proof::TokenFile(file.into()));
    let application = filled("AZURE_TENANT_ID").zip(client.clone());
    let identity = match application.zip(secret.or_else(token)) {
        Some(((tenant, client), proof)) => Identity::Application {
            authority: authority(variable),
            tenant,
            client,
            proof,
        },
        None => Identity::Machine {
            metadata: METADATA.to_owned(),
            client,
        },
    };
    Source {
        identity,
        scope: scope.to_owned(),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path)
        .map_err(|error| Error::Credentials(format!("failed to read {}: {error}", path.display())))
}

fn authority(variable: Variable<'_>) -> String {
    let found = variable("AZURE_AUTHORITY_HOST").filter(|url| !url.is_empty());
    let found = found.unwrap_or_else(|| Cloud::Public.endpoints().authority.to_owned());
    found.trim_end_matches('/').to_owned()
}

// === impl Source ===

impl Source {
    /// An application that authenticates with a secret at an authority, which is a URL.
    pub fn of_secret(
        authority: &str,
        tenant: &str,
        client: &str,
        secret: &str,
        scope: &str,
    ) -> Self {
        Self {
            identity: Identity::Application {
                authority: authority.to_owned(),
                tenant: tenant.to_owned(),
                client: client.to_owned(),
                proof: Proof::Secret(secret.to_owned()),
            },
            scope: scope.to_owned(),
        }
    }

    /// The same identity, with tokens for another scope.
    pub fn for_scope(&self, scope: &str) -> Self {
        Self {
            identity: self.identity.clone(),
            scope: scope.to_owned(),
        }
    }
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let identity = match &self.identity {
            Identity::Application { .. } => "Application",
            Identity::Machine { .. } => "Machine",
        };
        f.debug_struct("Source")
            .field("identity", &identity)
            .field("scope", &self.scope)
            .finish()
    }
}

impl TokenSource for Source {
    async fn load(&self, http: &Http) -> Result<Token, Error> {
        match &self.identity {
            Identity::Machine { metadata, client } => {
                let resource = self.scope.strip_suffix(ALL).unwrap_or(&self.scope);
                let url = machine_url(metadata, resource, client.as_deref());
                let build = || {
                    Request::get(&url)
                        .header("metadata", "true")
                        .body(Bytes::new())
                };
                request(http, metadata, build).await
            }
            Identity::Application {
                authority,
                tenant,
                client,
                proof,
            } => {
                let url = format!("{authority}/{tenant}/oauth2/v2.0/token");
                let form = form(&self.scope, client, &url, proof)?;
                let build = || {
                    Request::post(&url)
                        .header("content-type", "application/x-www-form-urlencoded")
                        .body(Bytes::from(form.clone()))
                };
                request(http, &url, build).await
            }
        }
    }
}

fn machine_url(metadata: &str, resource: &str, client: Option<&str>) -> String {
    let mut query = Serializer::new(String::new());
    query.append_pair("api-version", "2018-02-01");
    query.append_pair("resource", resource);
    if let Some(client) = client {
        query.append_pair("client_id", client);
    }
    format!("{metadata}?{}", query.finish())
}

fn form(scope: &str, client: &str, url: &str, proof: &Proof) -> Result<String, Error> {
    let (name, value) = match proof {
        Proof::Secret(secret) => ("client_secret", secret.clone()),
        Proof::TokenFile(path) => {
            let token = String::from_utf8_lossy(&read(path)?).trim().to_owned();
            ("client_assertion", token)
        }
        Proof::Certificate(certificate) => (
            "client_assertion",
            assertion::sign(certificate, client, url)?,
        ),
    };
    let mut form = Serializer::new(String::new());
    form.append_pair("grant_type", "client_credentials")
        .append_pair("scope", scope)
        .append_pair("client_id", client);
    if name == "client_assertion" {
        form.append_pair("client_assertion_type", ASSERTION);
    }
    Ok(form.append_pair(name, &value).finish())
}

async fn request(
    http: &Http,
    url: &str,
    build: impl Fn() -> http::Result<Request<Bytes>> + Send,
) -> Result<Token, Error> {
    let what = || format!("a token request to {url}");
    let response = http.send(build).await;
    let response = response.map_err(|source| Error::Http {
        what: what(),
        source,
    })?;
    let body: Value = serde_json::from_slice(response.body()).unwrap_or_default();
    let text = |key: &str| body[key].as_str().unwrap_or_default().to_owned();
    if !response.status().is_success() {
        // The other lines have identifiers of the request.
        let message = text("error_description");
        return Err(Error::Refused {
            what: what(),
            status: response.status().as_u16(),
            code: text("error"),
            message: message.lines().next().unwrap_or_default().to_owned(),
        });
    }
    let Some(token) = body["access_token"].as_str() else {
        return Err(Error::Response {
            what: what(),
            problem: "it has no access_token".to_owned(),
        });
    };
    Ok(Token {
        value: token.to_owned(),
        valid_for: valid_for(&body["expires_in"]),
    })
}

/// A number of seconds, which machines write as text. A token of unknown validity is used once.
fn valid_for(expires_in: &Value) -> Duration {
    let text = || expires_in.as_str()?.parse().ok();
    let seconds = expires_in.as_u64().or_else(text);
    Duration::from_secs(seconds.unwrap_or_default())
}
