//! Makes the endpoint of a private link, and deletes it. Each call may be the last one of this process: the next pass begins
//! with what it finds.

use serde_json::Value;
use support::azure_resources::{Resources, Written};
use support::rest::Calls;

use super::plan::{self, Cluster, ENDPOINTS, Endpoint, Link, Owner};
use super::status::{ERROR, NOT_APPROVED};
use crate::private_link::problem::{Problem, failed};

/// An endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Made {
    pub(super) id: String,
    pub(super) address: String,
}

/// How a deletion went on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Removal {
    Done,
    /// Azure is still deleting.
    Waiting,
}

/// Azure, where the cluster is.
pub(super) struct Azure<'a, C> {
    pub(super) cluster: &'a Cluster,
    pub(super) resources: Resources<'a, C>,
}

// === impl Azure ===

impl<'a, C: Calls> Azure<'a, C> {
    pub(super) fn new(cluster: &'a Cluster, calls: &'a C) -> Self {
        Self {
            cluster,
            resources: Resources::new(calls, cluster.group.endpoint),
        }
    }

    /// Makes the endpoint.
    pub(super) async fn connect(&self, link: &Link) -> Result<Made, Problem> {
        let (name, found) = self.find(link).await?;
        let id = self.cluster.group.id(ENDPOINTS, &name);
        let found = match found {
            Some(found) => found,
            None => self.create(&id, &name, link).await?,
        };
        match plan::endpoint(&found) {
            Endpoint::Useless => {
                let deleted = self.resources.delete(&id).await.map_err(failed(ERROR))?;
                let next = if deleted {
                    "it is created again"
                } else {
                    "waiting for its deletion"
                };
                let message = format!("private endpoint {name} never connects any more: {next}");
                return Err(Problem::input(ERROR, message));
            }
            Endpoint::Waiting => {
                let message = format!(
                    "waiting for the connection of private endpoint {name} to be approved by the management cluster"
                );
                return Err(Problem::input(NOT_APPROVED, message));
            }
            Endpoint::Connected => {}
        }
        let interface = match plan::interface(&found) {
            Some(id) => self.resources.find(id).await.map_err(failed(ERROR))?,
            None => None,
        };
        let Some(address) = interface.as_ref().and_then(plan::address) else {
            let message = format!("waiting for private endpoint {name} to have an address");
            return Err(Problem::input(ERROR, message));
        };
        Ok(Made {
            id,
            address: address.to_owned(),
        })
    }

    /// Deletes the endpoint. Those of other clusters are left as they are.
    pub(super) async fn disconnect(&self, link: &Link) -> Result<Removal, Problem> {
        for name in self.cluster.names(&link.endpoint()) {
            let id = self.cluster.group.id(ENDPOINTS, &name);
            let found = self.resources.find(&id).await.map_err(failed(ERROR))?;
            let is_own = |it: &Value| self.cluster.owner_of(it) == Owner::Cluster;
            if found.as_ref().is_some_and(is_own)
                && !self.resources.delete(&id).await.map_err(failed(ERROR))?
            {
                return Ok(Removal::Waiting);
            }
        }
        Ok(Removal::Done)
    }

    /// The name of the endpoint, and the endpoint if it exists.
    async fn find(&self, link: &Link) -> Result<(String, Option<Value>), Problem> {
        let mut free = None;
        for name in self.cluster.names(&link.endpoint()) {
            let id = self.cluster.group.id(ENDPOINTS, &name);
            let found = self
                .resources
                .find_settled(&id)
                .await
                .map_err(failed(ERROR))?;
            match found {
                Some(found) if self.cluster.owner_of(&found) == Owner::Cluster => {
                    return Ok((name, Some(found)));
                }
                Some(_) => {}
                None => free = free.or(Some(name)),
            }
        }
        let [first, second] = self.cluster.names(&link.endpoint());
        let name = free.ok_or_else(|| {
            let message = format!(
                "private endpoints {first} and {second} are not those of this cluster: another cluster has the same \
                 spec.infraID, or someone else has created them. Delete them if they are not in use"
            );
            Problem::input(ERROR, message)
        })?;
        Ok((name, None))
    }

    async fn create(&self, id: &str, name: &str, link: &Link) -> Result<Value, Problem> {
        let wanted = self.cluster.endpoint(name, link);
        match self
            .resources
            .put(id, wanted)
            .await
            .map_err(failed(ERROR))?
        {
            Written::Done(made) => Ok(made),
            Written::Busy => Err(Problem::input(
                ERROR,
                format!("waiting for private endpoint {name}, which Azure is working on"),
            )),
        }
    }
}
