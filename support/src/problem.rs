//! Why a private link is not as it is to be, in clouds with [`rest`]. Conditions say it; what the cloud says is in the log only.

use std::time::Duration;

use crate::error::chain;
use crate::rest;

/// When it is looked again for what is not there yet.
const WAITING: Duration = Duration::from_secs(20);

/// What has failed, and why.
#[derive(Debug)]
pub struct Problem {
    /// The reason in conditions: the step that has failed.
    pub reason: &'static str,
    cause: Cause,
}

#[derive(Debug)]
enum Cause {
    /// Something is not there yet, or an input is wrong: the message says so.
    Input(String),
    Cloud(rest::Error),
}

/// The failure of a call in a step.
pub fn failed(reason: &'static str) -> impl Fn(rest::Error) -> Problem + Copy {
    move |error| Problem {
        reason,
        cause: Cause::Cloud(error),
    }
}

// === impl Problem ===

impl Problem {
    /// A step that waits, or has a wrong input.
    pub fn input(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            reason,
            cause: Cause::Input(message.into()),
        }
    }

    /// For the author of the cluster, without the details: they differ each time, and may be for administrators only. `what` is
    /// what is made, and `advice` says what to do if the cloud does not make it.
    pub fn message(&self, what: &str, advice: &str) -> String {
        let problem = match &self.cause {
            Cause::Input(message) => return message.clone(),
            Cause::Cloud(error) => match (error.status(), error.code()) {
                (None, _) => "the cloud could not be used. It is tried again".to_owned(),
                (Some(status), "") => format!("the cloud refuses it (status {status})"),
                (Some(_), code) => format!("the cloud refuses it ({code})"),
            },
        };
        format!("failed to reconcile the {what}: {problem}. {advice}")
    }

    /// The status with which the cloud has refused a call.
    pub fn status(&self) -> Option<u16> {
        match &self.cause {
            Cause::Input(_) => None,
            Cause::Cloud(error) => error.status(),
        }
    }

    /// Writes the details to the log.
    pub fn log(&self) {
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
    pub fn pause(&self) -> Duration {
        match &self.cause {
            Cause::Input(_) => WAITING,
            Cause::Cloud(error) => error.pause(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_no_text_of_the_cloud() {
        let refused = |code: &str| rest::Error::Refused {
            what: "GET https://cloud.example.com/secret".to_owned(),
            status: 403,
            code: code.to_owned(),
            message: "secret".to_owned(),
        };
        let unusable = || rest::Error::Credentials("secret".to_owned());
        for (problem, expected) in [
            (Problem::input("R", "waiting for it"), "waiting for it"),
            (
                failed("R")(refused("Denied")),
                "failed to reconcile the link: the cloud refuses it (Denied). Check it",
            ),
            (
                failed("R")(refused("")),
                "failed to reconcile the link: the cloud refuses it (status 403). Check it",
            ),
            (
                failed("R")(unusable()),
                "failed to reconcile the link: the cloud could not be used. It is tried again. Check it",
            ),
        ] {
            assert_eq!(problem.message("link", "Check it"), expected);
        }
    }
}
