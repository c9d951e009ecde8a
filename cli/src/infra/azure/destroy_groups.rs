//! Deletes the resource groups of a cluster, with what the cluster and its controllers left in them. Of a group that was not
//! created for the cluster, or that has resources of another one, only the resources of the cluster are deleted.

use serde_json::Value;
use support::rest::{Calls, Error};

use super::executor::Executor;
use super::pass::Pass;
use super::resource::{RESOURCES, ResourceId, version};
use super::scope::{Owner, Scope};
use crate::Usage;

/// The order in which resources are deleted: what uses others, before what is used. Other types are last.
const ORDER: [&str; 13] = [
    "/virtualnetworklinks",
    "/virtualmachines",
    "/privateendpoints",
    "/privatelinkservices",
    "/networkinterfaces",
    "/loadbalancers",
    "/publicipaddresses",
    "/disks",
    "/virtualnetworks",
    "/networksecuritygroups",
    "/privatednszones",
    "/storageaccounts",
    "/userassignedidentities",
];

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DestroyRequest {
    /// The resource group of the cluster.
    pub(crate) main: String,
    keep: Keep,
}

/// Whether the resource group of the cluster is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keep {
    /// If it was not created for the cluster.
    IfGiven,
    Always,
}

/// What there is to do about a resource group.
#[derive(Debug, PartialEq, Eq)]
enum Plan {
    /// Nothing of the cluster is in it.
    Nothing,
    /// It is deleted with all that is in it.
    Group,
    /// Resources of the cluster are deleted, in this order.
    Resources(Vec<ResourceId>),
}

// === impl DestroyRequest ===

impl DestroyRequest {
    /// What flags ask for.
    pub(crate) fn new(scope: &Scope, group: Option<&str>, preserve: bool) -> Result<Self, Usage> {
        super::found::check_group("--resource-group-name", group)?;
        Ok(Self {
            main: group.map_or_else(|| scope.main_name(), str::to_owned),
            keep: if preserve {
                Keep::Always
            } else {
                Keep::IfGiven
            },
        })
    }

    /// All groups, in the order in which they are deleted: the network is used by what is in the first, and its security group
    /// by the network.
    fn groups(&self, scope: &Scope) -> [(String, Keep); 3] {
        [
            (self.main.clone(), self.keep),
            (scope.named("vnet"), Keep::IfGiven),
            (scope.named("nsg"), Keep::IfGiven),
        ]
    }
}

impl<C: Calls> Executor<'_, C> {
    /// Repeats passes until nothing is left.
    pub(crate) async fn destroy_groups(&self, request: &DestroyRequest) -> anyhow::Result<()> {
        let infra_id = &self.scope.infra_id;
        let what = format!("resource groups of {infra_id}");
        self.until_empty(&what, async || {
            let mut pass = Pass::default();
            for (name, keep) in request.groups(self.scope) {
                self.delete_group(&name, keep, &mut pass).await;
            }
            pass
        })
        .await?;
        let main = self.scope.group_id(&request.main);
        if self.find(&main, RESOURCES).await?.is_some() {
            self.say(&format!(
                "resource group {}: kept, because it was not created for {infra_id}, has resources of others, or is to be \
                 preserved",
                request.main
            ));
        }
        Ok(())
    }

    async fn delete_group(&self, name: &str, keep: Keep, pass: &mut Pass) {
        let what = format!("resource group {name}");
        let plan = self.plan(name, keep).await;
        match pass.check(&what, plan) {
            None | Some(Plan::Nothing) => {}
            Some(Plan::Group) => {
                let deleted = self.delete(&self.scope.group_id(name), RESOURCES).await;
                pass.check(&what, deleted);
            }
            Some(Plan::Resources(resources)) => {
                for resource in resources {
                    let deleted = self.delete(&resource.text, version(&resource.kind)).await;
                    pass.check(&resource.text, deleted);
                }
            }
        }
    }

    async fn plan(&self, name: &str, keep: Keep) -> Result<Plan, Error> {
        let id = self.scope.group_id(name);
        let Some(group) = self.find_settled(&id, RESOURCES).await? else {
            return Ok(Plan::Nothing);
        };
        let list = self.scope.url(&format!("{id}/resources"), RESOURCES);
        Ok(plan(self.scope, &group, keep, &self.list(list).await?))
    }

    /// Says what would be deleted, and deletes nothing.
    pub(crate) async fn report_groups(&self, request: &DestroyRequest) -> anyhow::Result<()> {
        for (name, keep) in request.groups(self.scope) {
            match self.plan(&name, keep).await? {
                Plan::Nothing => {}
                Plan::Group => {
                    self.say(&format!(
                        "resource group {name}: would be deleted, with all that is in it"
                    ));
                }
                Plan::Resources(resources) => {
                    for resource in resources {
                        self.say(&format!("{}: would be deleted", resource.text));
                    }
                }
            }
        }
        Ok(())
    }

    /// Deletes a group that was created for identities, once nothing is in it.
    pub(super) async fn delete_empty_group(&self, name: &str, pass: &mut Pass) {
        let what = format!("resource group {name}");
        let id = self.scope.group_id(name);
        let found = self.find_settled(&id, RESOURCES).await;
        let Some(Some(group)) = pass.check(&what, found) else {
            return;
        };
        if self.scope.owner(&group["tags"]) != Owner::Ours {
            return;
        }
        let list = self.scope.url(&format!("{id}/resources"), RESOURCES);
        let listed = self.list(list).await;
        if pass.check(&what, listed).is_some_and(|it| it.is_empty()) {
            let deleted = self.delete(&id, RESOURCES).await;
            pass.check(&what, deleted);
        }
    }
}

fn plan(scope: &Scope, group: &Value, keep: Keep, resources: &[Value]) -> Plan {
    let owners = resources.iter().map(|it| scope.owner(&it["tags"]));
    let others: Vec<String> = owners
        .filter_map(|owner| match owner {
            Owner::Other(infra_id) => Some(infra_id),
            Owner::Ours | Owner::Unknown => None,
        })
        .collect();
    let is_ours = scope.owner(&group["tags"]) == Owner::Ours;
    if is_ours && keep == Keep::IfGiven && others.is_empty() {
        return Plan::Group;
    }
    let is_of_cluster = |resource: &&Value| match scope.owner(&resource["tags"]) {
        Owner::Ours => true,
        Owner::Other(_) => false,
        Owner::Unknown => {
            let name = resource["name"].as_str().unwrap_or_default();
            scope.names(name, &others)
        }
    };
    let ids = resources.iter().filter(is_of_cluster);
    let ids = ids.filter_map(|it| ResourceId::parse(it["id"].as_str()?));
    let mut ids: Vec<_> = ids.collect();
    ids.sort_by_cached_key(|id| (rank(&id.kind), id.text.clone()));
    if ids.is_empty() {
        return Plan::Nothing;
    }
    Plan::Resources(ids)
}

fn rank(kind: &str) -> usize {
    let found = ORDER.iter().position(|end| kind.ends_with(end));
    found.unwrap_or(ORDER.len())
}
