//! Destroys an infrastructure: what `create` made, and what the cluster and its controllers left.
//!
//! Steps follow each other in an order in which nothing is used any more. One that fails does not keep the others from being
//! done, and all failures are reported.

use anyhow::bail;
use serde_json::Value;
use support::rest::Calls;

use super::api::{Api, Workspace};
use super::create::Vpc;
use super::executor::{Executor, Pace, id, is_deleted, required, text};
use super::policies::Credentials;
use super::scope::Reused;

/// DHCP servers and workspaces.
const POWER_VS: Pace = Pace::new(5, 10);

/// What is there.
pub(super) struct Left {
    pub(super) account: String,
    /// Identifier of the resource group.
    pub(super) group: String,
}

impl<C: Calls> Executor<'_, C> {
    /// Destroys it. What is reused is kept, but not what was created in it.
    pub(crate) async fn destroy(&self, reused: &Reused) -> anyhow::Result<()> {
        let account = self.account().await?;
        let group = self.group(&account).await?;
        let left = Left { account, group };
        let results = [
            (
                "DNS record",
                Box::pin(self.delete_records(&left, reused)).await,
            ),
            (
                "image registry",
                Box::pin(self.delete_registry(&left)).await,
            ),
            (
                "service IDs",
                Box::pin(self.delete_service_ids(&left)).await,
            ),
            ("transit gateway", Box::pin(self.delete_gateway()).await),
            (
                "subnets",
                Box::pin(self.delete_subnets(&left, reused)).await,
            ),
            ("VPC", Box::pin(self.delete_vpc(&left)).await),
            (
                "DHCP server",
                Box::pin(self.delete_dhcp_servers(&left, reused)).await,
            ),
            ("workspace", Box::pin(self.delete_workspace(&left)).await),
        ];
        let failed = results.into_iter().filter_map(|(step, result)| {
            let error = result.err()?;
            Some(format!("{step}: {error:#}"))
        });
        let failed: Vec<_> = failed.collect();
        if failed.is_empty() {
            return Ok(());
        }
        bail!(
            "failed to destroy parts of infrastructure {}: {}. Run the command again to continue",
            self.scope.infra_id,
            failed.join("; ")
        )
    }

    /// Reports what would be destroyed, and destroys nothing.
    pub(crate) async fn report_destruction(&self, reused: &Reused) -> anyhow::Result<()> {
        let account = self.account().await?;
        let group = self.group(&account).await?;
        let would = |what: &str| self.say(&format!("{what}: would be destroyed"));
        if let Some(zone) = self.find_zone().await?
            && !self.records(&zone).await?.is_empty()
        {
            let record = self.scope.record();
            would(&format!("DNS record {record}, if it is of the cluster"));
        }
        if let Some(registry) = self.own_registry(&group).await? {
            would(&format!(
                "instance {} with its buckets",
                text(&registry["name"])
            ));
        }
        for credentials in Credentials::ALL {
            if let Some(found) = self.own_service_id(&account, credentials).await? {
                would(&format!("service ID {}", text(&found["name"])));
            }
        }
        if self.own_gateway().await?.is_some() {
            would(&format!("transit gateway {}", self.scope.gateway()));
        }
        for (name, vpc) in self.used_vpcs(&group, reused).await? {
            if name == self.scope.vpc() {
                would(&format!("VPC {name} ({}) with its subnets", vpc.id));
            } else {
                would(&format!("what was created in VPC {name} ({})", vpc.id));
            }
        }
        if self.own_workspace(&group).await?.is_some() {
            would(&format!("workspace {}", self.scope.workspace()));
        }
        Ok(())
    }

    /// The service IDs, with their policies and API keys.
    async fn delete_service_ids(&self, left: &Left) -> anyhow::Result<()> {
        let mut failed = Vec::new();
        for credentials in Credentials::ALL {
            let deleted = self.delete_service_id(&left.account, credentials).await;
            failed.extend(deleted.err().map(|error| format!("{error:#}")));
        }
        if failed.is_empty() {
            return Ok(());
        }
        bail!("{}", failed.join("; "))
    }

    async fn delete_service_id(
        &self,
        account: &str,
        credentials: Credentials,
    ) -> anyhow::Result<()> {
        let Some(found) = self.own_service_id(account, credentials).await? else {
            return Ok(());
        };
        let what = format!("service ID {}", text(&found["name"]));
        let iam_id = required(&what, &found, "iam_id")?;
        // They would be left without their subject.
        for policy in self.find_policies(account, &iam_id).await? {
            let what = format!("policy of {what}");
            let delete = self.api.delete_policy(&id(&what, &policy)?);
            self.delete(&what, &delete).await?;
        }
        // Its API keys go with it.
        let delete = self.api.delete_service_id(&id(&what, &found)?);
        self.delete(&what, &delete).await
    }

    /// The workspaces in which there may be something of the infrastructure: its own, and one that is reused. With each,
    /// whether it is its own.
    async fn used_workspaces(
        &self,
        group: &str,
        reused: &Reused,
    ) -> anyhow::Result<Vec<(bool, Workspace)>> {
        let mut used = Vec::new();
        let own = self.own_workspace(group).await?;
        if let Some(own) = &own {
            used.push((true, Workspace::of(own)?));
        }
        if let Some(id) = &reused.workspace
            && used.iter().all(|(_, it)| it.id != *id)
        {
            let found = self.find(&self.api.instance(id)).await?;
            let found = found.filter(|it| Api::is_workspace(it) && !is_deleted(it));
            if let Some(found) = found {
                used.push((false, Workspace::of(&found)?));
            }
        }
        Ok(used)
    }

    /// The DHCP servers of the own workspace, and the one that was created in a reused one.
    async fn delete_dhcp_servers(&self, left: &Left, reused: &Reused) -> anyhow::Result<()> {
        let network = self.scope.dhcp_network();
        for (is_own, workspace) in self.used_workspaces(&left.group, reused).await? {
            for server in self.find_dhcp_servers(&workspace).await? {
                if !is_own && server["network"]["name"] != network {
                    continue;
                }
                let what = format!("DHCP server of workspace {}", workspace.id);
                let id = id(&what, &server)?;
                let delete = self.api.delete_dhcp_server(&workspace, &id);
                let look = self.api.server(&workspace, &id);
                self.remove(&what, POWER_VS, &delete, &look).await?;
            }
        }
        Ok(())
    }

    async fn delete_workspace(&self, left: &Left) -> anyhow::Result<()> {
        let Some(found) = self.own_workspace(&left.group).await? else {
            return Ok(());
        };
        let what = format!("workspace {}", self.scope.workspace());
        let id = required(&what, &found, "guid")?;
        let delete = self.api.delete_instance(&id);
        let look = self.api.instance(&id);
        self.remove(&what, POWER_VS, &delete, &look).await
    }

    /// The VPCs in which there may be something of the infrastructure: its own, and one that is reused.
    pub(super) async fn used_vpcs(
        &self,
        group: &str,
        reused: &Reused,
    ) -> anyhow::Result<Vec<(String, Vpc)>> {
        let own = self.own_vpc(group).await?;
        let mut found: Vec<Value> = own.into_iter().collect();
        if let Some(name) = reused
            .vpc
            .as_ref()
            .filter(|name| **name != self.scope.vpc())
        {
            found.extend(self.find_vpcs(group, name).await?);
        }
        let named = |it: &Value| anyhow::Ok((text(&it["name"]).to_owned(), Vpc::of(it)?));
        found.iter().map(named).collect()
    }
}
