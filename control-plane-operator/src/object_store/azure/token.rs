//! Tokens of Microsoft Entra ID for Azure Storage.

use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use form_urlencoded::Serializer;
use http::Request;
use serde::Deserialize;
use serde_json::Value;

use super::assertion::{self, Certificate};
use crate::object_store::{Error, Http, Variable};

/// What tokens are for.
const SCOPE: &str = "https://storage.azure.com/.default";
const RESOURCE: &str = "https://storage.azure.com/";
const AUTHORITY: &str = "https://login.microsoftonline.com";
/// The metadata service of a virtual machine.
const METADATA: &str = "http://169.254.169.254/metadata/identity/oauth2/token";
const ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// Which credentials a file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum AuthType {
    /// JSON with tenantId, clientId and clientSecret.
    ClientSecret,
    /// JSON of the managed identity data plane, with a certificate.
    ManagedIdentity,
}

/// Where a token comes from.
#[derive(PartialEq, Eq)]
pub(crate) enum Source {
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
#[derive(PartialEq, Eq)]
pub(crate) enum Proof {
    Secret(String),
    /// A token of a service account.
    TokenFile(PathBuf),
    Certificate(Certificate),
}

/// A file for `client-secret`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ClientSecret {
    tenant_id: String,
    client_id: String,
    #[serde(rename = "clientSecret")]
    secret: String,
}

/// A file for `managed-identity`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ManagedIdentity {
    authentication_endpoint: String,
    tenant_id: String,
    client_id: String,
    client_secret: String,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Application { .. } => "Application",
            Self::Machine { .. } => "Machine",
        })
    }
}

/// Finds credentials: in the file, or without a file in the environment as programs of Azure do.
pub(crate) fn source(
    file: Option<&Path>,
    auth_type: AuthType,
    variable: Variable<'_>,
) -> Result<Source, Error> {
    let Some(file) = file else {
        return Ok(of_environment(variable));
    };
    let bytes = fs::read(file).map_err(|source| Error::File {
        path: file.display().to_string(),
        source,
    })?;
    if bytes.trim_ascii().is_empty() {
        return Ok(of_environment(variable));
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
            Ok(Source::Application {
                authority: authority(variable),
                tenant: file.tenant_id,
                client: file.client_id,
                proof: Proof::Secret(file.secret),
            })
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
            Ok(Source::Application {
                authority: endpoint.trim_end_matches('/').to_owned(),
                tenant: file.tenant_id,
                client: file.client_id,
                proof: Proof::Certificate(certificate),
            })
        }
    }
}

fn authority(variable: Variable<'_>) -> String {
    let found = variable("AZURE_AUTHORITY_HOST").filter(|url| !url.is_empty());
    let found = found.unwrap_or_else(|| AUTHORITY.to_owned());
    found.trim_end_matches('/').to_owned()
}

/// A secret, the token of a service account, or the identity of the machine.
fn of_environment(variable: Variable<'_>) -> Source {
    let filled = |name: &str| variable(name).filter(|value| !value.is_empty());
    let client = filled("AZURE_CLIENT_ID");
    let secret = filled("AZURE_CLIENT_SECRET").map(Proof::Secret);
    let token = || filled("AZURE_FEDERATED_TOKEN_FILE").map(|file| Proof::TokenFile(file.into()));
    let application = filled("AZURE_TENANT_ID").zip(client.clone());
    match application.zip(secret.or_else(token)) {
        Some(((tenant, client), proof)) => Source::Application {
            authority: authority(variable),
            tenant,
            client,
            proof,
        },
        None => Source::Machine {
            metadata: METADATA.to_owned(),
            client,
        },
    }
}

// === impl Source ===

impl Source {
    /// Requests a token.
    pub(super) async fn load(&self, http: &Http) -> Result<String, Error> {
        match self {
            Self::Machine { metadata, client } => {
                let mut query = Serializer::new(String::new());
                query.append_pair("api-version", "2018-02-01");
                query.append_pair("resource", RESOURCE);
                if let Some(client) = client {
                    query.append_pair("client_id", client);
                }
                let url = format!("{metadata}?{}", query.finish());
                let build = || {
                    Request::get(&url)
                        .header("metadata", "true")
                        .body(Bytes::new())
                };
                request(http, metadata, build).await
            }
            Self::Application {
                authority,
                tenant,
                client,
                proof,
            } => {
                let url = format!("{authority}/{tenant}/oauth2/v2.0/token");
                let (name, value) = match proof {
                    Proof::Secret(secret) => ("client_secret", secret.clone()),
                    Proof::TokenFile(path) => {
                        let token = fs::read_to_string(path).map_err(|source| Error::File {
                            path: path.display().to_string(),
                            source,
                        })?;
                        ("client_assertion", token.trim().to_owned())
                    }
                    Proof::Certificate(certificate) => {
                        let assertion = assertion::sign(certificate, client, &url)?;
                        ("client_assertion", assertion)
                    }
                };
                let mut form = Serializer::new(String::new());
                form.append_pair("grant_type", "client_credentials");
                form.append_pair("scope", SCOPE)
                    .append_pair("client_id", client);
                if name == "client_assertion" {
                    form.append_pair("client_assertion_type", ASSERTION);
                }
                let form = form.append_pair(name, &value).finish();
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

async fn request(
    http: &Http,
    url: &str,
    build: impl Fn() -> http::Result<Request<Bytes>>,
) -> Result<String, Error> {
    let what = || format!("a token request to {url}");
    let response = http.send(build).await;
    let response = response.map_err(|source| Error::Http {
        what: what(),
        source,
    })?;
    let body: Value = serde_json::from_slice(response.body()).unwrap_or_default();
    let text = |key: &str| body[key].as_str().unwrap_or_default().to_owned();
    if !response.status().is_success() {
        let message = text("error_description");
        return Err(Error::Refused {
            what: what(),
            status: response.status().as_u16(),
            code: text("error"),
            message: message.lines().next().unwrap_or_default().to_owned(),
        });
    }
    match body["access_token"].as_str() {
        Some(token) => Ok(token.to_owned()),
        None => Err(Error::Response {
            what: what(),
            problem: "it has no access_token".to_owned(),
        }),
    }
}
