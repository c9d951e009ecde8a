//! Makes the endpoint of Private Service Connect, and deletes it. Each call may be the last one of this process: the next pass
//! begins with what it finds.

use serde_json::Value;
use support::google_resources::{Compute, Dns};
use support::rest::Calls;

use super::plan::{self, ADDRESSES, Attachment, Cluster, Endpoint, Owner, RULES};
use super::status::{ADDRESS, ENDPOINT, ERROR};
use crate::private_link::problem::{Problem, failed};

/// How a deletion went on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Removal {
    Done,
    /// Google Cloud is still deleting.
    Waiting,
}

/// Google Cloud, where the cluster is.
pub(super) struct Google<'a, C> {
    pub(super) cluster: &'a Cluster,
    pub(super) dns: Dns<'a, C>,
    compute: Compute<'a, C>,
}

// === impl Google ===

impl<'a, C: Calls> Google<'a, C> {
    pub(super) fn new(cluster: &'a Cluster, calls: &'a C) -> Self {
        Self {
            cluster,
            dns: Dns::new(calls, &cluster.region.project),
            compute: Compute::new(calls, &cluster.region),
        }
    }

    /// Makes the endpoint, and returns its address.
    pub(super) async fn connect(&self, attachment: &Attachment) -> Result<String, Problem> {
        let name = attachment.address();
        let wanted = || self.cluster.address(attachment);
        let address = self.ensure(ADDRESSES, &name, wanted, ADDRESS).await?;
        let Some(address) = address["address"].as_str() else {
            let message = format!("waiting for address {name} to be reserved");
            return Err(Problem::input(ADDRESS, message));
        };
        let name = attachment.rule();
        let wanted = || self.cluster.rule(attachment);
        let rule = self.ensure(RULES, &name, wanted, ENDPOINT).await?;
        match plan::endpoint(&rule, attachment) {
            Endpoint::Connected => Ok(address.to_owned()),
            Endpoint::Waiting => Err(Problem::input(
                ENDPOINT,
                format!(
                    "waiting for forwarding rule {name} to be accepted by service attachment {}",
                    attachment.name
                ),
            )),
            Endpoint::Useless => {
                let deleted = self.compute.delete(RULES, &name).await;
                deleted.map_err(failed(ENDPOINT))?;
                let message = format!(
                    "forwarding rule {name} does not lead to service attachment {}, or never connects any more: it is created \
                     again",
                    attachment.name
                );
                Err(Problem::input(ENDPOINT, message))
            }
        }
    }

    /// Deletes the endpoint. Those of other clusters are left as they are.
    pub(super) async fn disconnect(&self, attachment: &Attachment) -> Result<Removal, Problem> {
        for (kind, name) in [
            (RULES, attachment.rule()),
            (ADDRESSES, attachment.address()),
        ] {
            let found = self.compute.find(kind, &name).await;
            let Some(found) = found.map_err(failed(ERROR))? else {
                continue;
            };
            if self.cluster.owner_of(&found) == Owner::Another {
                continue;
            }
            if !self
                .compute
                .delete(kind, &name)
                .await
                .map_err(failed(ERROR))?
            {
                return Ok(Removal::Waiting);
            }
        }
        Ok(Removal::Done)
    }

    async fn ensure(
        &self,
        kind: &str,
        name: &str,
        wanted: impl Fn() -> Value,
        reason: &'static str,
    ) -> Result<Value, Problem> {
        let mut found = self
            .compute
            .find(kind, name)
            .await
            .map_err(failed(reason))?;
        if found.is_none() {
            let created = self.compute.insert(kind, wanted()).await;
            if created.map_err(failed(reason))? {
                found = self
                    .compute
                    .find(kind, name)
                    .await
                    .map_err(failed(reason))?;
            }
        }
        let Some(found) = found else {
            let message = format!("waiting for {kind}/{name}, which Google Cloud is working on");
            return Err(Problem::input(reason, message));
        };
        if self.cluster.owner_of(&found) == Owner::Another {
            let message = format!(
                "{kind}/{name} is another cluster's, by its description: another cluster has the same spec.clusterID, or \
                 someone else has created it. Delete it if it is not in use"
            );
            return Err(Problem::input(reason, message));
        }
        Ok(found)
    }
}
