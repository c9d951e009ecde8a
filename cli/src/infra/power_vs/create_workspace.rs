//! Creates the workspace of Power VS, and the DHCP server of its machines.

use std::time::Instant;

use anyhow::bail;
use support::rest::Calls;

use super::api::Workspace;
use super::create::Found;
use super::executor::{Executor, Goal, Pace, id, required};
use super::lookup::ACTIVE;
use super::output::{Output, Stat};

/// A workspace that can be used.
const WORKSPACE: Goal = Goal {
    field: "state",
    ready: ACTIVE,
    failed: &["failed", "removed", "pending_reclamation"],
    pace: Pace::new(5, 5),
};
/// A DHCP server that can be used.
const DHCP_SERVER: Goal = Goal {
    field: "status",
    ready: "ACTIVE",
    failed: &["ERROR"],
    pace: Pace::new(60, 30),
};

impl<C: Calls> Executor<'_, C> {
    pub(super) async fn create_workspace(
        &self,
        found: &Found,
        output: &mut Output,
    ) -> anyhow::Result<Workspace> {
        if let Some(value) = &found.workspace {
            let workspace = Workspace::of(value)?;
            output.cloud_instance_id.clone_from(&workspace.id);
            output.stats.cloud_instance = Stat::of(&value["state"]);
            return Ok(workspace);
        }
        let name = self.scope.workspace();
        let what = format!("workspace {name}");
        let begin = Instant::now();
        let find = async || self.own_workspace(&found.group).await;
        let zone = &self.scope.place.zone;
        let create = self.api.create_workspace(&found.group, &name, zone);
        let made = self.ensure(&what, find, &create).await?;
        let look = self.api.instance(&required(&what, &made.value, "guid")?);
        let value = self.until_ready(&what, &WORKSPACE, &look).await?;
        let workspace = Workspace::of(&value)?;
        output.cloud_instance_id.clone_from(&workspace.id);
        output.stats.cloud_instance = Stat::of(&value["state"]).since(begin, &made);
        self.tag(&what, &name, &workspace.crn).await?;
        Ok(workspace)
    }

    /// The only DHCP server of the workspace, which has the network of machines.
    pub(super) async fn create_dhcp_server(
        &self,
        workspace: &Workspace,
        output: &mut Output,
    ) -> anyhow::Result<()> {
        let what = format!("DHCP server of workspace {}", workspace.id);
        let begin = Instant::now();
        let find = async || {
            let mut servers = self.find_dhcp_servers(workspace).await?;
            if servers.len() > 1 {
                bail!("there are several: delete all but one");
            }
            anyhow::Ok(servers.pop())
        };
        // The network of machines gets a name that is made of this one.
        let name = &self.scope.infra_id;
        let create = self.api.create_dhcp_server(workspace, name);
        let made = self.ensure(&what, find, &create).await?;
        let look = self.api.dhcp_server(workspace, &id(&what, &made.value)?);
        let server = self.until_ready(&what, &DHCP_SERVER, &look).await?;
        let network = &server["network"];
        output.dhcp_subnet = required(&what, network, "name")?;
        output.dhcp_subnet_id = id(&what, network)?;
        output.stats.dhcp_service = Stat::of(&server["status"]).since(begin, &made);
        Ok(())
    }
}
