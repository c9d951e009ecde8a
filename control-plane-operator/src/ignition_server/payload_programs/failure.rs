//! Why there is no payload, and what follows from it. Pure.

use std::time::Duration;

use support::error::chain;

use super::super::read;
use super::super::token::AS_EXPECTED;
use super::inputs::Outdated;

/// How long a failure counts before the programs run again with the same inputs.
pub(super) const FAILED: Duration = Duration::from_mins(1);
/// How often the pause doubles while failures follow each other.
const DOUBLINGS: u32 = 5;
/// How soon what is missing is looked for again.
const PENDING: Duration = Duration::from_secs(5);
/// How soon a registry that does not deliver is asked again.
const REGISTRY: Duration = Duration::from_secs(30);

/// There is no payload, for this reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::ignition_server) struct Failure {
    pub(in crate::ignition_server) reason: &'static str,
    pub(in crate::ignition_server) message: String,
    /// When to try again.
    pub(in crate::ignition_server) retry: Duration,
    /// Whether a payload that was made before must not be served any more.
    pub(in crate::ignition_server) is_final: bool,
    /// Whether it was the result before, for the same inputs.
    pub(in crate::ignition_server) is_known: bool,
}

/// How long a result counts after this many failures in a row with the same inputs: programs use a lot of CPU time, and
/// mostly fail again.
pub(super) fn pause(failures: u32) -> Duration {
    FAILED * 2_u32.pow(failures.saturating_sub(1).min(DOUBLINGS))
}

// === impl Failure ===

impl Failure {
    /// Something is not there yet.
    pub(super) fn pending(message: impl Into<String>) -> Self {
        Self {
            reason: "ControlPlanePending",
            message: message.into(),
            retry: PENDING,
            is_final: false,
            is_known: false,
        }
    }

    /// The programs were interrupted, or there is no room for their files. With the same inputs they may succeed.
    pub(super) fn interrupted(message: impl Into<String>) -> Self {
        Self {
            retry: FAILED,
            ..Self::pending(message)
        }
    }

    /// An input cannot be used.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self {
            reason: "InvalidConfig",
            ..Self::interrupted(message)
        }
    }

    /// There is no payload for these inputs.
    pub(super) fn refused(message: impl Into<String>) -> Self {
        Self {
            is_final: true,
            ..Self::invalid(message)
        }
    }

    /// Whether a token whose Secret has this reason needs no report. Several servers write to the Secret: one that cannot
    /// make a payload now does not replace the report of one that has made it.
    pub(in crate::ignition_server) fn is_reported(&self, reason: &str) -> bool {
        let is_made = reason == AS_EXPECTED;
        if self.is_known {
            return is_made || reason == self.reason;
        }
        is_made && !self.is_final
    }

    /// Whether it is a new fact about the inputs, which replaces any other report.
    pub(in crate::ignition_server) fn is_news(&self) -> bool {
        self.is_final && !self.is_known
    }
}

impl From<read::Error> for Failure {
    fn from(error: read::Error) -> Self {
        Self::pending(chain(&error))
    }
}

impl From<Outdated> for Failure {
    fn from(outdated: Outdated) -> Self {
        let message = outdated.to_string();
        match outdated {
            Outdated::CloudConfig(_) => Self {
                reason: "CloudConfigPending",
                is_final: true,
                ..Self::pending(message)
            },
            _ => Self::pending(message),
        }
    }
}

impl From<payload::Error> for Failure {
    fn from(error: payload::Error) -> Self {
        let message = chain(&error);
        if error.is_transient() {
            return Self {
                retry: REGISTRY,
                ..Self::pending(message)
            };
        }
        Self::invalid(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_do_not_replace_the_reports_of_others() {
        let known = |failure: Failure| Failure {
            is_known: true,
            ..failure
        };
        let (refused, pending) = (Failure::refused("no"), Failure::pending("later"));
        for (name, failure, reason, expected) in [
            ("first", &refused, "", false),
            ("after a payload", &refused, AS_EXPECTED, false),
            ("while there is a payload", &pending, AS_EXPECTED, true),
            (
                "with another message",
                &pending,
                "ControlPlanePending",
                false,
            ),
            ("the same", &known(refused.clone()), "InvalidConfig", true),
            (
                "the same, of another server that has one",
                &known(refused.clone()),
                AS_EXPECTED,
                true,
            ),
            (
                "the same, not written yet",
                &known(refused.clone()),
                "",
                false,
            ),
        ] {
            assert_eq!(failure.is_reported(reason), expected, "{name}");
        }
        assert!(refused.is_news() && !known(refused).is_news() && !pending.is_news());
    }

    #[test]
    fn failures_in_a_row_have_longer_pauses() {
        for (failures, minutes) in [(0, 1), (1, 1), (2, 2), (3, 4), (6, 32), (u32::MAX, 32)] {
            assert_eq!(pause(failures), Duration::from_mins(minutes), "{failures}");
        }
    }
}
