//! What has become of a private link on Azure or Google Cloud, and its conditions. Pure.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::problem::Problem;

/// What has become of the endpoint, and then of its names.
#[derive(Debug)]
pub(super) struct Outcome<E, Z> {
    /// What nodes connect to.
    pub(super) endpoint: Result<E, Problem>,
    /// `None` if they have not been looked at.
    pub(super) zones: Option<Result<Z, Problem>>,
}

/// The words of a cloud.
pub(super) struct Words {
    /// The reason of conditions that are True.
    pub(super) success: &'static str,
    /// What is made, in messages.
    pub(super) what: &'static str,
    /// What to do if the cloud does not make it, in messages.
    pub(super) advice: &'static str,
}

// === impl Outcome ===

impl<E, Z> Outcome<E, Z> {
    /// The endpoint could not be made, or deleted.
    pub(super) fn failed(problem: Problem) -> Self {
        Self {
            endpoint: Err(problem),
            zones: None,
        }
    }

    /// Why it is not as it is to be.
    pub(super) fn problem(&self) -> Option<&Problem> {
        let zones = self.zones.as_ref().and_then(|it| it.as_ref().err());
        self.endpoint.as_ref().err().or(zones)
    }
}

// === impl Words ===

impl Words {
    /// A condition: True with a message, or False with a problem.
    pub(super) fn condition(
        &self,
        about: &str,
        problem: Option<&Problem>,
        message: String,
        (generation, now): (Option<i64>, Timestamp),
    ) -> Condition {
        let (status, reason) = match problem {
            None => ("True", self.success),
            Some(problem) => ("False", problem.reason),
        };
        Condition {
            type_: about.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: problem.map_or(message, |it| it.message(self.what, self.advice)),
            observed_generation: generation,
            last_transition_time: Time(now),
        }
    }
}
