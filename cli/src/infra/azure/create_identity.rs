//! Creates the identities of components, and has them trust the service accounts of a cluster.

use anyhow::Context as _;
use serde_json::{Map, Value, json};
use support::rest::{Calls, Error};

use super::assign_roles::Assignee;
use super::components::{COMPONENTS, Component, KMS};
use super::executor::Executor;
use super::found::check_group;
use super::identity_files::{self, Registry, is_needed};
use super::network::{self, Desired};
use super::resource::{IDENTITIES, RESOURCES};
use super::roles::ROLES;
use crate::Usage;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IdentityRequest {
    /// Name of the resource group, which is created if it does not exist.
    pub(super) group: String,
    issuer: String,
    components: Vec<&'static Component>,
}

/// What there is: the file of `--workload-identities-file`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IdentityOutput {
    made: Vec<Identity>,
}

/// An identity.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Identity {
    component: &'static Component,
    client_id: String,
    principal: String,
}

// === impl IdentityRequest ===

impl IdentityRequest {
    /// Identities in a resource group, which trust tokens of an issuer.
    pub(crate) fn new(group: &str, issuer: &str) -> Result<Self, Usage> {
        check_group("--resource-group-name", Some(group))?;
        if !issuer.starts_with("https://") {
            return Err(Usage::new(&format!(
                "--oidc-issuer-url {issuer:?}: write the URL of the issuer with https, as it is in its tokens"
            )));
        }
        Ok(Self {
            group: group.to_owned(),
            issuer: issuer.to_owned(),
            components: COMPONENTS.iter().collect(),
        })
    }

    /// Also one for encryption by a key of a key vault.
    pub(crate) fn with_kms(mut self) -> Self {
        self.components.push(&KMS);
        self
    }
}

// === impl IdentityOutput ===

impl IdentityOutput {
    /// The document of the file.
    pub(super) fn document(&self) -> Value {
        let field = |identity: &Identity| {
            let id = json!(identity.client_id);
            if *identity.component == KMS {
                return (identity_files::KMS.to_owned(), id);
            }
            let field = identity.component.field.to_owned();
            (field, json!({ "clientID": id }))
        };
        Value::Object(self.made.iter().map(field).collect::<Map<_, _>>())
    }

    /// The principals of the identities, with their roles.
    pub(super) fn assignees(&self, registry: Registry) -> Vec<Assignee> {
        let roles = ROLES.iter().filter(|role| is_needed(role, registry));
        let assignees = roles.filter_map(|role| {
            let mut made = self.made.iter();
            let identity = made.find(|it| it.component.field == role.field)?;
            Some(Assignee {
                role,
                principal: identity.principal.clone(),
            })
        });
        assignees.collect()
    }
}

impl<C: Calls> Executor<'_, C> {
    /// Creates what is missing, in an order in which an interrupted run can be continued.
    pub(super) async fn create_identity(
        &self,
        request: &IdentityRequest,
    ) -> anyhow::Result<IdentityOutput> {
        let group = self.scope.group_id(&request.group);
        if self.find(&group, RESOURCES).await?.is_none() {
            let desired = network::group(self.scope, &request.group);
            self.ensure(&desired).await?;
        }
        let mut made = Vec::new();
        for &component in &request.components {
            let desired = network::identity(self.scope, &group, component.part);
            let identity = self.ensure(&desired).await?;
            let property = |name: &str| {
                let text = identity["properties"][name].as_str();
                let text = text.map(str::to_owned);
                text.with_context(|| format!("identity {} has no {name}", desired.name()))
            };
            made.push(Identity {
                component,
                client_id: property("clientId")?,
                principal: property("principalId")?,
            });
            for credential in component.credentials(self.scope, &desired.id, &request.issuer) {
                let name = credential.name();
                let ensured = self.ensure_credential(&credential).await;
                ensured.with_context(|| format!("failed to create federated credential {name}"))?;
            }
        }
        Ok(IdentityOutput { made })
    }

    /// Credentials have no tags: they belong to their identity.
    async fn ensure_credential(&self, desired: &Desired) -> Result<(), Error> {
        let name = desired.name();
        if let Some(found) = self.find(&desired.id, IDENTITIES).await? {
            let (found, desired) = (&found["properties"], &desired.body["properties"]);
            let is_same = |field: &&str| found[*field] == desired[*field];
            if ["issuer", "subject", "audiences"].iter().all(is_same) {
                self.say(&format!("federated credential {name}: exists"));
                return Ok(());
            }
        }
        self.put(desired).await?;
        self.say(&format!("federated credential {name}: created"));
        Ok(())
    }

    /// Says what there is of the identities, and creates nothing.
    pub(super) async fn report_identity(&self, request: &IdentityRequest) -> anyhow::Result<()> {
        let group = self.scope.group_id(&request.group);
        let mut desired = vec![network::group(self.scope, &request.group)];
        let parts = request.components.iter().map(|component| component.part);
        desired.extend(parts.map(|part| network::identity(self.scope, &group, part)));
        for desired in desired {
            let state = match self.find(&desired.id, desired.version).await? {
                Some(_) => "exists",
                None => "would be created",
            };
            self.say(&format!("{} {}: {state}", desired.noun, desired.name()));
        }
        Ok(())
    }
}
