//! The client of Azure, with the credentials of this operator.

use std::sync::Arc;

use support::azure::{self, AuthType, Source};
use support::rest;
use tokio::sync::Mutex;

use crate::config::AzurePrivateLink;

/// The variable with the URL of Microsoft Entra ID, where it is not the one of the cloud.
const AUTHORITY: &str = "AZURE_AUTHORITY_HOST";

/// The client.
pub(super) type Client = rest::Client<Source>;

/// The last client, and what its tokens come from.
#[derive(Debug, Default)]
pub(super) struct Clients(Mutex<Option<(Source, Arc<Client>)>>);

// === impl Clients ===

impl Clients {
    /// The client, with the credentials as they are now: the file may be replaced.
    pub(super) async fn get(
        &self,
        settings: &AzurePrivateLink,
    ) -> Result<Arc<Client>, rest::Error> {
        let source = source(settings)?;
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

fn source(settings: &AzurePrivateLink) -> Result<Source, rest::Error> {
    let endpoints = settings.cloud.endpoints();
    let variable = |name: &str| {
        let found = std::env::var(name).ok();
        let default = || (name == AUTHORITY).then(|| endpoints.authority.to_owned());
        found.or_else(default)
    };
    azure::source(
        settings.credentials.as_deref(),
        AuthType::ClientSecret,
        &endpoints.management_scope(),
        &variable,
    )
}
