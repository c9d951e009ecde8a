//! Why a private link on Azure or Google Cloud is not as it is to be.

use std::time::Duration;

use support::error::chain;
use support::rest;

/// When it is looked again for what is not there yet.
const WAITING: Duration = Duration::from_secs(30);

/// What has failed, and why.
#[derive(Debug)]
pub(super) struct Problem {
    /// The reason in conditions: the step that has failed.
    pub(super) reason: &'static str,
    cause: Cause,
}

#[derive(Debug)]
enum Cause {
    /// Something is not there yet, or an input is wrong: the message says so.
    Input(String),
    Cloud(rest::Error),
}

/// The failure of a call in a step.
pub(super) fn failed(reason: &'static str) -> impl Fn(rest::Error) -> Problem + Copy {
    move |error| Problem {
        reason,
        cause: Cause::Cloud(error),
    }
}

// === impl Problem ===

impl Problem {
    /// A step that waits, or has a wrong input.
    pub(super) fn input(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            reason,
            cause: Cause::Input(message.into()),
        }
    }

    /// For the author of the cluster: what only administrators may see is in the log. `what` is what is made, and `check`
    /// is what administrators check.
    pub(super) fn message(&self, what: &str, check: &str) -> String {
        let problem = match &self.cause {
            Cause::Input(message) => return message.clone(),
            Cause::Cloud(error) => match (error.status(), error.code()) {
                (None, _) => "the cloud could not be used. It is tried again".to_owned(),
                (Some(status), "") => format!("the cloud refuses it (status {status})"),
                (Some(_), code) => format!("the cloud refuses it ({code})"),
            },
        };
        format!(
            "failed to reconcile the {what}: {problem}; the administrator of the management cluster finds the cause in the log \
             of the operator, and checks {check}"
        )
    }

    /// Writes to the log what only administrators may see.
    pub(super) fn log(&self) {
        if let Cause::Cloud(error) = &self.cause {
            let reason = self.reason;
            tracing::warn!(
                reason,
                error = chain(error),
                "Failed to reconcile a private link"
            );
        }
    }

    /// When it is tried again.
    pub(super) fn pause(&self) -> Duration {
        match &self.cause {
            Cause::Input(_) => WAITING,
            Cause::Cloud(error) => error.pause(),
        }
    }
}
