//! Deletes the role assignments of a cluster and the identities of its components.

use serde_json::Value;
use support::aws::encoded;
use support::rest::{Calls, Error};

use super::components::{COMPONENTS, KMS};
use super::executor::Executor;
use super::network;
use super::pass::Pass;
use super::resource::{AUTHORIZATION, IDENTITIES};
use super::roles::{Groups, possible_assignments};
use super::scope::Owner;

impl<C: Calls> Executor<'_, C> {
    /// Deletes the role assignments whose names are made of the cluster's, in these groups. Repeats passes until nothing is
    /// left.
    pub(crate) async fn destroy_roles(&self, groups: &[Groups]) -> anyhow::Result<()> {
        let what = format!("role assignments of {}", self.scope.infra_id);
        self.until_empty(&what, async || {
            let mut pass = Pass::default();
            self.delete_roles(groups, &mut pass).await;
            pass
        })
        .await
    }

    /// Deletes role assignments, identities and the resource group of identities if it is empty then. `clients` are client
    /// IDs of identities that may have no tag, because another tool has created them.
    pub(super) async fn destroy_identity(
        &self,
        group: &str,
        clients: &[String],
        groups: &[Groups],
    ) -> anyhow::Result<()> {
        let what = format!("identities of {}", self.scope.infra_id);
        self.until_empty(&what, async || {
            let mut pass = Pass::default();
            for id in self.identities(group) {
                self.delete_identity(&id, clients, &mut pass).await;
            }
            self.delete_roles(groups, &mut pass).await;
            self.delete_empty_group(group, &mut pass).await;
            pass
        })
        .await
    }

    /// The IDs of all identities that a cluster may have in a resource group.
    fn identities(&self, group: &str) -> Vec<String> {
        let group = self.scope.group_id(group);
        let components = COMPONENTS.iter().chain([&KMS]);
        let identities =
            components.map(|component| network::identity(self.scope, &group, component.part).id);
        identities.collect()
    }

    async fn delete_identity(&self, id: &str, clients: &[String], pass: &mut Pass) {
        let found = self.own_identity(id, clients).await;
        let Some(Some(identity)) = pass.check(id, found) else {
            return;
        };
        // They would stay, for a principal that does not exist.
        let principal = identity["properties"]["principalId"].as_str();
        let listed = self.assignments_of(principal.unwrap_or_default()).await;
        let Some(assignments) = pass.check(id, listed) else {
            return;
        };
        let mut is_left = false;
        for assignment in assignments {
            let deleted = self.delete(&assignment, AUTHORIZATION).await;
            is_left |= pass.check(&assignment, deleted).is_none();
        }
        if is_left {
            return;
        }
        let deleted = self.delete(id, IDENTITIES).await;
        pass.check(id, deleted);
    }

    /// An identity that belongs to the cluster.
    async fn own_identity(&self, id: &str, clients: &[String]) -> Result<Option<Value>, Error> {
        let found = self.find(id, IDENTITIES).await?;
        Ok(found.filter(|identity| {
            let client = identity["properties"]["clientId"].as_str();
            let client = client.unwrap_or_default();
            match self.scope.owner(&identity["tags"]) {
                Owner::Ours => true,
                Owner::Other(_) => false,
                Owner::Unknown => clients.iter().any(|it| it.eq_ignore_ascii_case(client)),
            }
        }))
    }

    /// The IDs of the role assignments of a principal.
    async fn assignments_of(&self, principal: &str) -> Result<Vec<String>, Error> {
        if principal.is_empty() {
            return Ok(Vec::new());
        }
        let filter = encoded(&format!("principalId eq '{principal}'"));
        let list = "providers/Microsoft.Authorization/roleAssignments";
        let url = self.scope.list_url(list, AUTHORIZATION);
        let found = self.list(format!("{url}&$filter={filter}")).await?;
        // Services may ignore filters that they do not know.
        let is_it = |it: &&Value| {
            let of = it["properties"]["principalId"].as_str();
            of.is_some_and(|of| of.eq_ignore_ascii_case(principal))
        };
        let ids = found.iter().filter(is_it);
        Ok(ids
            .filter_map(|it| it["id"].as_str().map(str::to_owned))
            .collect())
    }

    async fn delete_roles(&self, groups: &[Groups], pass: &mut Pass) {
        for id in possible_assignments(self.scope, groups) {
            let found = self.find(&id, AUTHORIZATION).await;
            if let Some(Some(_)) = pass.check(&id, found) {
                let deleted = self.delete(&id, AUTHORIZATION).await;
                pass.check(&id, deleted);
            }
        }
    }

    /// Says what would be deleted, and deletes nothing.
    pub(super) async fn report_identity_destruction(
        &self,
        group: &str,
        clients: &[String],
        groups: &[Groups],
    ) -> anyhow::Result<()> {
        for id in self.identities(group) {
            if self.own_identity(&id, clients).await?.is_some() {
                self.say(&format!(
                    "{id}: would be deleted, with its role assignments"
                ));
            }
        }
        self.report_roles(groups).await
    }

    /// The same of role assignments.
    pub(crate) async fn report_roles(&self, groups: &[Groups]) -> anyhow::Result<()> {
        for id in possible_assignments(self.scope, groups) {
            if self.find(&id, AUTHORIZATION).await?.is_some() {
                self.say(&format!("{id}: would be deleted"));
            }
        }
        Ok(())
    }
}
