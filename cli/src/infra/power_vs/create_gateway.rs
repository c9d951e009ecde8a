//! Creates the transit gateway, and connects VPC and workspace by it.

use std::time::Instant;

use serde_json::Value;
use support::rest::{Calls, Request};

use super::api::Workspace;
use super::create::{CreateRequest, Found, Vpc};
use super::executor::{Executor, Goal, Pace, id, required, text};
use super::output::{Output, Stat};

/// A gateway that can be used.
const GATEWAY: Goal = Goal {
    field: "status",
    ready: "available",
    failed: &["failed", "deleting"],
    pace: Pace::new(5, 15),
};
/// A connection that can be used.
const CONNECTION: Goal = Goal {
    field: "status",
    ready: "attached",
    failed: &["failed", "deleting", "detached"],
    pace: Pace::new(30, 15),
};
const VPC: &str = "vpc";
const POWER_VS: &str = "power_virtual_server";

impl<C: Calls> Executor<'_, C> {
    pub(super) async fn create_gateway(
        &self,
        request: &CreateRequest,
        found: &Found,
        vpc: &Vpc,
        workspace: &Workspace,
        output: &mut Output,
    ) -> anyhow::Result<()> {
        let begin = Instant::now();
        let (gateway, stat) = match &found.gateway {
            Some(gateway) => {
                let stat = Stat::of(&gateway["status"]);
                (id("transit gateway", gateway)?, stat)
            }
            None => self.own_or_new_gateway(request, found, begin).await?,
        };
        output.stats.transit_gateway_state = stat;
        let [to_vpc, to_workspace] = self.scope.connections();
        let looks = [
            self.connect(&gateway, &to_vpc, VPC, &vpc.crn).await?,
            self.connect(&gateway, &to_workspace, POWER_VS, &workspace.crn)
                .await?,
        ];
        for (what, look) in &looks {
            self.until_ready(what, &CONNECTION, look).await?;
        }
        Ok(())
    }

    async fn own_or_new_gateway(
        &self,
        request: &CreateRequest,
        found: &Found,
        begin: Instant,
    ) -> anyhow::Result<(String, Stat)> {
        let name = self.scope.gateway();
        let what = format!("transit gateway {name}");
        let create = self.api.create_gateway(
            &found.group,
            &name,
            &request.gateway_location,
            request.is_global(self.scope),
        );
        let find = async || self.own_gateway().await;
        let made = self.ensure(&what, find, &create).await?;
        let id = id(&what, &made.value)?;
        let look = self.api.gateway(&id);
        let gateway = self.until_ready(&what, &GATEWAY, &look).await?;
        let crn = required(&what, &gateway, "crn")?;
        self.tag(&what, &name, &crn).await?;
        let stat = Stat::of(&gateway["status"]).since(begin, &made);
        Ok((id, stat))
    }

    /// Connects a network, unless it is connected under whatever name. Returns what it is called in messages, and the call
    /// that looks at it.
    async fn connect(
        &self,
        gateway: &str,
        name: &str,
        kind: &str,
        network: &str,
    ) -> anyhow::Result<(String, Request)> {
        let what = format!("connection {name}");
        let is_it = |it: &Value| it["network_id"] == network && text(&it["status"]) != "deleting";
        let find = async || {
            let connections = self.find_connections(gateway).await?;
            anyhow::Ok(connections.into_iter().find(is_it))
        };
        let create = self.api.create_connection(gateway, name, kind, network);
        let made = self.ensure(&what, find, &create).await?;
        let look = self.api.connection(gateway, &id(&what, &made.value)?);
        Ok((what, look))
    }
}
