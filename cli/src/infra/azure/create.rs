//! Creates all of the infrastructure of a cluster: identities that no file describes, network and roles.

use support::rest::Calls;

use super::create_identity::IdentityRequest;
use super::create_network::NetworkOutput;
use super::executor::Executor;
use super::found::NetworkRequest;
use super::identity_files::{Client, IdentityFiles, Registry};
use super::roles::RoleSet;
use crate::Usage;

/// What is asked for.
#[derive(Debug)]
pub(crate) struct CreateRequest {
    network: NetworkRequest,
    identities: Identities,
    /// Which roles are assigned, if any are.
    roles: Option<RoleSet>,
    registry: Registry,
    /// Those that exist and get roles.
    clients: Vec<Client>,
}

/// Who components of the cluster are.
#[derive(Debug)]
pub(crate) enum Identities {
    /// Files describe them.
    Existing(IdentityFiles),
    /// They are created in the resource group of the cluster.
    Created(IdentityRequest),
}

// === impl CreateRequest ===

impl CreateRequest {
    /// Checks the identities that get roles.
    pub(crate) fn new(
        network: NetworkRequest,
        identities: Identities,
        roles: Option<RoleSet>,
        registry: Registry,
    ) -> Result<Self, Usage> {
        let clients = match (&identities, roles) {
            (Identities::Existing(files), Some(_)) => files.clients(registry)?,
            (Identities::Existing(_), None) | (Identities::Created(_), _) => Vec::new(),
        };
        Ok(Self {
            network,
            identities,
            roles,
            registry,
            clients,
        })
    }
}

impl<C: Calls> Executor<'_, C> {
    /// Creates what is missing, in an order in which an interrupted run can be continued. What is wrong is refused before
    /// anything is written.
    pub(crate) async fn create(&self, request: &CreateRequest) -> anyhow::Result<NetworkOutput> {
        let found = self.find_network(&request.network).await?;
        let mut roles = match request.roles {
            Some(set) => Some(self.find_roles(set, &request.clients).await?),
            None => None,
        };
        let identities = match &request.identities {
            Identities::Existing(files) => files.clone(),
            Identities::Created(identities) => {
                self.ensure_main_group(&request.network).await?;
                let made = self.create_identity(identities).await?;
                if let Some(roles) = &mut roles {
                    roles.assignees = made.assignees(request.registry);
                }
                IdentityFiles::workload(made.document())?
            }
        };
        let created = self
            .create_network(&request.network, &found, roles.as_ref())
            .await?;
        Ok(created.with(&identities))
    }

    /// Says what there is, and creates nothing.
    pub(crate) async fn report(&self, request: &CreateRequest) -> anyhow::Result<()> {
        let found = self.find_network(&request.network).await?;
        if let Identities::Created(identities) = &request.identities {
            self.report_identity(identities).await?;
        }
        self.report_network(&request.network, &found).await
    }
}
