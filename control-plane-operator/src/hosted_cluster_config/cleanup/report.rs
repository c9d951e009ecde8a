//! Condition `CloudResourcesDestroyed`. Pure.

use std::fmt;

use api::conditions::{ClusterCondition, Status};
use support::error::chain;

use super::super::control_plane::DesiredCondition;
use super::super::error::Error;
use super::skip::Skip;

/// How many names of a kind a message has.
const NAMES: usize = 3;

/// Remaining resources in the hosted cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Remaining {
    pub(super) image_registry: Vec<String>,
    pub(super) ingress_controllers: Vec<String>,
    pub(super) load_balancers: Vec<String>,
    pub(super) volumes: Vec<String>,
    pub(super) snapshots: Vec<String>,
}

/// The result of all steps.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) remaining: Remaining,
    pub(super) errors: Vec<Error>,
}

pub(super) fn condition(done: &Done) -> DesiredCondition {
    if !done.errors.is_empty() {
        let errors = done.errors.iter().map(|error| chain(error));
        let message = errors.collect::<Vec<_>>().join("; ");
        return desired(Status::False, "ErrorOccurred", message);
    }
    if done.remaining == Remaining::default() {
        return desired(
            Status::True,
            "CloudResourcesDestroyed",
            "All cloud resources of the hosted cluster are deleted".to_owned(),
        );
    }
    let message = done.remaining.to_string();
    desired(Status::False, "RemainingCloudResources", message)
}

/// The cluster is deleted without the cleanup.
pub(super) fn skipped(skip: Skip) -> DesiredCondition {
    let message = format!(
        "Skipped cleanup: {}. Check the cloud account for leftover load balancers, volumes and buckets.",
        skip.as_str()
    );
    desired(Status::False, "CloudResourcesCleanupSkipped", message)
}

fn desired(status: Status, reason: &'static str, message: String) -> DesiredCondition {
    DesiredCondition {
        type_: ClusterCondition::CloudResourcesDestroyed,
        status,
        reason,
        message,
    }
}

impl fmt::Display for Remaining {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            image_registry,
            ingress_controllers,
            load_balancers,
            volumes,
            snapshots,
        } = self;
        let parts = [
            ("image-registry", image_registry),
            ("ingress-controllers", ingress_controllers),
            ("loadbalancers", load_balancers),
            ("persistent-volumes", volumes),
            ("volume-snapshots", snapshots),
        ];
        let parts = parts.iter().filter(|(_, names)| !names.is_empty());
        let parts: Vec<_> = parts
            .map(|(what, names)| {
                let more = if names.len() > NAMES { ", ..." } else { "" };
                let first: Vec<_> = names.iter().take(NAMES).map(String::as_str).collect();
                format!("{} {what} ({}{more})", names.len(), first.join(", "))
            })
            .collect();
        write!(f, "Waiting for deletion of {}", parts.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_report_what_remains() {
        let remaining = |count: usize| Remaining {
            load_balancers: (0..count).map(|index| format!("a/s-{index}")).collect(),
            image_registry: (0..count.min(1)).map(|_| "cluster".to_owned()).collect(),
            ..Remaining::default()
        };
        let done = |count: usize, errors: Vec<Error>| Done {
            remaining: remaining(count),
            errors,
        };
        for (done, status, reason, message) in [
            (
                done(0, vec![]),
                Status::True,
                "CloudResourcesDestroyed",
                "All cloud resources of the hosted cluster are deleted",
            ),
            (
                done(5, vec![]),
                Status::False,
                "RemainingCloudResources",
                "Waiting for deletion of 1 image-registry (cluster); 5 loadbalancers (a/s-0, a/s-1, a/s-2, ...)",
            ),
            (
                done(5, vec![Error::waiting("one"), Error::waiting("another")]),
                Status::False,
                "ErrorOccurred",
                "waiting for one; waiting for another",
            ),
        ] {
            let found = condition(&done);
            assert_eq!((found.status, found.reason), (status, reason));
            assert_eq!(found.message, message);
        }
        for skip in [
            Skip::KubeApiServerUnavailable,
            Skip::MaxConnectionFailuresExceeded,
            Skip::ConnectionFailureTimeout,
        ] {
            let found = skipped(skip);
            assert_eq!(
                (found.status, found.reason),
                (Status::False, "CloudResourcesCleanupSkipped")
            );
            assert!(found.message.contains(skip.as_str()));
        }
    }
}
