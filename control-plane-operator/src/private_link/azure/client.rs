//! The client of Azure, as the identity of the control-plane-operator.

use std::path::Path;
use std::sync::Arc;

use api::hypershift::v1beta1::platform::azure::AzurePlatformSpec;
use serde_json::json;
use support::azure::{self, Cloud, Source};
use support::rest;
use tokio::sync::Mutex;

use super::status::ERROR;
use crate::private_link::problem::Problem;

/// The client.
pub(super) type Client = rest::Client<Source>;

/// The last client, and what its tokens come from.
#[derive(Debug, Default)]
pub(super) struct Clients(Mutex<Option<(Source, Arc<Client>)>>);

// === impl Clients ===

impl Clients {
    /// The client of the identity in the specification, which proves itself with the token in a file.
    pub(super) async fn get(
        &self,
        azure: &AzurePlatformSpec,
        token: &Path,
    ) -> Result<Arc<Client>, Problem> {
        let source = source(azure, token)?;
        let mut known = self.0.lock().await;
        if let Some((before, client)) = &*known
            && *before == source
        {
            return Ok(Arc::clone(client));
        }
        let client = Arc::new(rest::Client::new(source.clone()));
        *known = Some((source, Arc::clone(&client)));
        Ok(client)
    }
}

/// The cloud of a cluster.
pub(super) fn cloud(azure: &AzurePlatformSpec) -> Result<Cloud, Problem> {
    let name = json!(azure.cloud);
    let name = name.as_str().unwrap_or_default();
    Cloud::of_name(name).ok_or_else(|| {
        let message = format!("spec.platform.azure.cloud is {name}, which has no private links");
        Problem::input(ERROR, message)
    })
}

fn source(azure: &AzurePlatformSpec, token: &Path) -> Result<Source, Problem> {
    let endpoints = cloud(azure)?.endpoints();
    let identities = azure
        .azure_authentication_config
        .workload_identities
        .as_ref();
    let identity = identities.and_then(|it| it.control_plane_operator.as_ref());
    let Some(identity) = identity else {
        let message = "spec.platform.azure.azureAuthenticationConfig.workloadIdentities.controlPlaneOperator is required for \
                       a private link: set it";
        return Err(Problem::input(ERROR, message));
    };
    let variable = |name: &str| match name {
        "AZURE_CLIENT_ID" => Some(identity.client_id.0.clone()),
        "AZURE_TENANT_ID" => Some(azure.tenant_id.clone()),
        "AZURE_FEDERATED_TOKEN_FILE" => Some(token.display().to_string()),
        "AZURE_AUTHORITY_HOST" => Some(endpoints.authority.to_owned()),
        // The credentials of the machine, and of other programs, are not the cluster's.
        _ => None,
    };
    Ok(azure::of_environment(
        &endpoints.management_scope(),
        &variable,
    ))
}
