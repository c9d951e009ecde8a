//! Makes the service attachment of a GCPPrivateServiceConnect, and deletes it. Each call may be the last one of this process:
//! the next pass begins with what it finds.

use support::google_resources::{Compute, Region, is_same};
use support::rest::{Calls, Error};

use super::plan::{self, ATTACHMENTS, Attachment, Desired, RULES, Rule, SUBNETS, Target};
use crate::private_link::problem::{Problem, failed};

/// Reasons of conditions.
pub(super) const ERROR: &str = "GCPError";
pub(super) const CREATION: &str = "ServiceAttachmentCreationFailed";

/// How far it has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Progress {
    /// The name of the forwarding rule is written to the specification.
    Record(String),
    /// The service attachment of this name is as it is to be.
    Done(String),
}

/// How a deletion went on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Removal {
    Done,
    /// Google Cloud is still deleting.
    Waiting,
}

/// Google Cloud, where the management cluster is.
pub(super) struct Google<'a, C> {
    compute: Compute<'a, C>,
}

// === impl Google ===

impl<'a, C: Calls> Google<'a, C> {
    pub(super) fn new(region: &'a Region, calls: &'a C) -> Self {
        Self {
            compute: Compute::new(calls, region),
        }
    }

    /// Makes it.
    pub(super) async fn ensure(&self, desired: &Desired) -> Result<Progress, Problem> {
        let rule = self.rule(&desired.target).await?;
        if desired.recorded_rule.as_ref() != Some(&rule.name) {
            return Ok(Progress::Record(rule.name));
        }
        let all = self.attachments().await.map_err(failed(CREATION))?;
        let is_own = |it: &&Attachment| plan::is_own(it, &desired.target, Some(rule.url.as_str()));
        let mut current = None;
        for own in all.iter().filter(is_own) {
            if is_same(&own.rule, &rule.url) {
                current = Some(own);
                continue;
            }
            // The Service has got another load balancer.
            if !self.delete(own).await.map_err(failed(CREATION))? {
                return Err(waits(&own.name));
            }
        }
        if let Some(current) = current {
            if let Some(change) = plan::change(current, desired) {
                let patched = self.compute.patch(ATTACHMENTS, &current.name, change).await;
                if !patched.map_err(failed(CREATION))? {
                    return Err(waits(&current.name));
                }
            }
            return Ok(Progress::Done(current.name.clone()));
        }
        let mut others = all.iter().filter(|it| !is_own(it));
        if let Some(other) = others.find(|it| it.name == desired.name) {
            let message = format!(
                "service attachment {} is not the one of this cluster: another cluster has the same spec.clusterID, or someone \
                 else has created it. The administrator of the management cluster deletes it if it is not in use",
                other.name
            );
            return Err(Problem::input(CREATION, message));
        }
        self.create(desired, &rule, &all).await
    }

    /// Deletes it. Service attachments that are not the cluster's are left as they are.
    pub(super) async fn remove(&self, target: &Target) -> Result<Removal, Problem> {
        let rule = match &target.balancer {
            Some(_) => self.rule(target).await.ok(),
            None => None,
        };
        let proof = rule.as_ref().map(|it| it.url.as_str());
        let all = self.attachments().await.map_err(failed(ERROR))?;
        for own in all.iter().filter(|it| plan::is_own(it, target, proof)) {
            if !self.delete(own).await.map_err(failed(ERROR))? {
                return Ok(Removal::Waiting);
            }
        }
        Ok(Removal::Done)
    }

    async fn rule(&self, target: &Target) -> Result<Rule, Problem> {
        let Some(own) = &target.balancer else {
            let message = "waiting for the Service to have an internal load balancer";
            return Err(Problem::input(ERROR, message));
        };
        let filter = plan::filter(&own.address);
        let found = self.compute.list(RULES, Some(&filter)).await;
        let found = found.map_err(failed(ERROR))?;
        plan::rule(&found, target, own).map_err(|message| Problem::input(ERROR, message))
    }

    /// All service attachments of the region.
    async fn attachments(&self) -> Result<Vec<Attachment>, Error> {
        let found = self.compute.list(ATTACHMENTS, None).await?;
        Ok(found.iter().map(Attachment::of).collect())
    }

    async fn create(
        &self,
        desired: &Desired,
        rule: &Rule,
        all: &[Attachment],
    ) -> Result<Progress, Problem> {
        let subnets = self.compute.list(SUBNETS, None).await;
        let subnets = subnets.map_err(failed(CREATION))?;
        let subnet = plan::subnet(&subnets, all, desired, rule);
        let subnet = subnet.map_err(|message| Problem::input(CREATION, message))?;
        let wanted = plan::resource(desired, rule, &subnet);
        let created = self.compute.insert(ATTACHMENTS, wanted).await;
        if !created.map_err(failed(CREATION))? {
            return Err(waits(&desired.name));
        }
        Ok(Progress::Done(desired.name.clone()))
    }

    async fn delete(&self, own: &Attachment) -> Result<bool, Error> {
        self.compute.delete(ATTACHMENTS, &own.name).await
    }
}

fn waits(name: &str) -> Problem {
    let message =
        format!("waiting for service attachment {name}, which Google Cloud is working on");
    Problem::input(CREATION, message)
}
