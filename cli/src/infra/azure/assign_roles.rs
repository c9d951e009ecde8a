//! Assigns roles to the identities of components.

use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::Value;
use support::aws::encoded;
use support::rest::{Calls, Error, Request};

use super::executor::Executor;
use super::identity_files::Client;
use super::network::Desired;
use super::resource::AUTHORIZATION;
use super::roles::{Groups, NODE_POOL_MANAGEMENT, Role, RoleSet, assignments};

/// Attempts at what depends on a new identity, which is not known everywhere at once.
const ATTEMPTS: u32 = 12;
const INTERVAL: Duration = Duration::from_secs(5);

/// Which roles are assigned to whom.
#[derive(Debug)]
pub(super) struct RolesRequest {
    pub(super) set: RoleSet,
    /// The ID of a role definition that has to be looked up.
    pub(super) node_pool_management: Option<String>,
    pub(super) assignees: Vec<Assignee>,
}

/// A principal that gets a role.
#[derive(Debug)]
pub(super) struct Assignee {
    pub(super) role: &'static Role,
    pub(super) principal: String,
}

impl<C: Calls> Executor<'_, C> {
    /// Looks up what is assigned, and to whom. Nothing is written.
    pub(super) async fn find_roles(
        &self,
        set: RoleSet,
        clients: &[Client],
    ) -> anyhow::Result<RolesRequest> {
        let node_pool_management = match set {
            RoleSet::Usual => None,
            RoleSet::Custom => Some(self.definition(NODE_POOL_MANAGEMENT).await?),
        };
        let mut assignees = Vec::new();
        for client in clients {
            assignees.push(Assignee {
                role: client.role,
                principal: self.principal(&client.client_id).await?,
            });
        }
        Ok(RolesRequest {
            set,
            node_pool_management,
            assignees,
        })
    }

    /// The ID of the role definition with a name.
    async fn definition(&self, name: &str) -> anyhow::Result<String> {
        let list = "providers/Microsoft.Authorization/roleDefinitions";
        let filter = encoded(&format!("roleName eq '{name}'"));
        let url = self.scope.list_url(list, AUTHORIZATION);
        let found = self.list(format!("{url}&$filter={filter}")).await;
        let found = found.with_context(|| format!("failed to look up role {name:?}"))?;
        let id = found.first().and_then(|it| it["id"].as_str());
        let id = id.with_context(|| {
            format!(
                "there is no role {name:?} in the subscription: create it, or leave out --assign-custom-hcp-roles"
            )
        })?;
        Ok(id.to_owned())
    }

    /// The object ID of the service principal of an application.
    async fn principal(&self, client: &str) -> anyhow::Result<String> {
        let filter = encoded(&format!("appId eq '{client}'"));
        let graph = self.scope.endpoints.graph;
        let url = format!("{graph}/v1.0/servicePrincipals?$filter={filter}&$select=id");
        let what = || format!("failed to look up the service principal of {client}");
        for _ in 0..ATTEMPTS {
            let found = self.list(url.clone()).await.with_context(what)?;
            let ids: Vec<_> = found.iter().filter_map(|it| it["id"].as_str()).collect();
            match ids.as_slice() {
                [] => self.calls.pause(INTERVAL).await,
                [id] => return Ok((*id).to_owned()),
                _ => bail!("client ID {client} has several service principals: choose another one"),
            }
        }
        bail!(
            "client ID {client} has no service principal in the tenant: check the files with identities"
        );
    }

    /// Assigns the roles that are missing.
    pub(super) async fn assign_roles(
        &self,
        groups: &Groups,
        request: &RolesRequest,
    ) -> anyhow::Result<()> {
        for desired in assignments(self.scope, groups, request) {
            let assigned = self.assign(&desired).await;
            assigned.with_context(|| {
                format!(
                    "failed to assign a role to principal {} in {}",
                    desired.body["properties"]["principalId"], desired.id
                )
            })?;
        }
        Ok(())
    }

    async fn assign(&self, desired: &Desired) -> Result<(), Error> {
        let name = desired.name();
        match self.find(&desired.id, AUTHORIZATION).await {
            Ok(Some(found)) if is_same(&found, &desired.body) => {
                self.say(&format!("role assignment {name}: exists"));
                return Ok(());
            }
            // The identity was created again, with the same name.
            Ok(Some(_)) => self.delete(&desired.id, AUTHORIZATION).await?,
            Ok(None) => {}
            // Those who may assign roles may not always read assignments.
            Err(error) if error.is_denied() => {}
            Err(error) => return Err(error),
        }
        let url = self.scope.url(&desired.id, AUTHORIZATION);
        let request = Request::put(url, desired.body.clone());
        let mut attempt = 1;
        loop {
            let error = match self.calls.call(&request).await {
                Ok(_) => {
                    self.say(&format!("role assignment {name}: created"));
                    return Ok(());
                }
                // An assignment of another tool has the same effect.
                Err(error) if error.is_conflict() => {
                    self.say(&format!("role assignment {name}: exists"));
                    return Ok(());
                }
                Err(error) => error,
            };
            if error.code() != "PrincipalNotFound" || attempt == ATTEMPTS {
                return Err(error);
            }
            attempt += 1;
            self.calls.pause(INTERVAL).await;
        }
    }
}

/// Whether an assignment is for the same principal and role.
fn is_same(found: &Value, desired: &Value) -> bool {
    ["principalId", "roleDefinitionId"].iter().all(|field| {
        let text = |document: &Value| document["properties"][*field].as_str().map(str::to_owned);
        let pair = text(found).zip(text(desired));
        pair.is_some_and(|(found, desired)| found.eq_ignore_ascii_case(&desired))
    })
}
