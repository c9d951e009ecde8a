//! Why a private link on Azure or Google Cloud is not as it is to be.

use std::time::Duration;

use support::error::chain;
use support::rest;

use crate::hosted_control_plane::tokens::NoToken;

/// When it is looked again for what is not there yet.
const WAITING: Duration = Duration::from_secs(20);

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

/// What it means that there is no token for a cloud.
pub(super) fn no_token(reason: &'static str) -> impl Fn(NoToken) -> Problem + Copy {
    move |no_token| {
        let message = match no_token {
            NoToken::NoKubeconfig => {
                "waiting for the kubeconfig of the API server, which issues the tokens for the cloud"
                    .to_owned()
            }
            NoToken::Refused(problem) => {
                format!("failed to get a token for the cloud from the API server: {problem}")
            }
        };
        Problem::input(reason, message)
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

    /// For the author of the cluster. The details of clouds differ each time, and are in the log. `what` is what is made, and
    /// `identity` is the field with the identity that makes it.
    pub(super) fn message(&self, what: &str, identity: &str) -> String {
        match &self.cause {
            Cause::Input(message) => message.clone(),
            Cause::Cloud(error) => match (error.status(), error.code()) {
                (None, _) => format!(
                    "failed to reconcile the {what}: the cloud could not be used. It is tried again; the log of the \
                     control-plane-operator has the cause"
                ),
                (Some(status), code) => format!(
                    "failed to reconcile the {what}: the cloud refuses it ({}). Check the permissions of {identity}, and the \
                     limits of the account; the log of the control-plane-operator has the details",
                    if code.is_empty() {
                        format!("status {status}")
                    } else {
                        code.to_owned()
                    }
                ),
            },
        }
    }

    /// The status with which the cloud has refused a call.
    pub(super) fn status(&self) -> Option<u16> {
        match &self.cause {
            Cause::Input(_) => None,
            Cause::Cloud(error) => error.status(),
        }
    }

    /// Writes the details to the log.
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
