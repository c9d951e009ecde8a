//! The client of Google Cloud, as the service account of the control-plane-operator.

use std::path::Path;
use std::sync::Arc;

use api::hypershift::v1beta1::platform::gcp::GcpWorkloadIdentityConfig;
use serde_json::{Value, json};
use support::error::chain;
use support::google_cloud::Credentials;
use support::rest;
use tokio::sync::Mutex;

use super::status::ERROR;
use crate::private_link::identity::write;
use crate::private_link::problem::{Problem, failed};

/// The client.
pub(super) type Client = rest::Client<Credentials>;

/// The last client, and what its tokens come from.
#[derive(Debug, Default)]
pub(super) struct Clients(Mutex<Option<(Value, Arc<Client>)>>);

// === impl Clients ===

impl Clients {
    /// The client of the service account in the specification, which proves itself with the token in a file.
    pub(super) async fn get(
        &self,
        identity: &GcpWorkloadIdentityConfig,
        token: &Path,
    ) -> Result<Arc<Client>, Problem> {
        let credentials = credentials(identity, token);
        let mut known = self.0.lock().await;
        if let Some((before, client)) = &*known
            && *before == credentials
        {
            return Ok(Arc::clone(client));
        }
        // The file has no secret in it.
        let file = token.with_extension("json");
        let written = write(&file, credentials.to_string().as_bytes());
        written.map_err(|error| {
            let message = format!("failed to write {}: {}", file.display(), chain(&error));
            Problem::input(ERROR, message)
        })?;
        let source = Credentials::of_file(&file).map_err(failed(ERROR))?;
        let client = Arc::new(rest::Client::new(source));
        *known = Some((credentials, Arc::clone(&client)));
        Ok(client)
    }
}

/// How the token is exchanged for one of the service account.
pub(super) fn credentials(identity: &GcpWorkloadIdentityConfig, token: &Path) -> Value {
    let GcpWorkloadIdentityConfig {
        project_number,
        pool_id,
        provider_id,
        service_accounts_emails,
    } = identity;
    let pool =
        format!("projects/{project_number}/locations/global/workloadIdentityPools/{pool_id}");
    let email = &service_accounts_emails.control_plane;
    let account = format!("projects/-/serviceAccounts/{email}:generateAccessToken");
    json!({
        "type": "external_account",
        "audience": format!("//iam.googleapis.com/{pool}/providers/{provider_id}"),
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "token_url": "https://sts.googleapis.com/v1/token",
        "service_account_impersonation_url": format!("https://iamcredentials.googleapis.com/v1/{account}"),
        "credential_source": { "file": token.display().to_string(), "format": { "type": "text" } },
    })
}
