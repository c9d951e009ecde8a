//! Errors of reconciling.

use support::apply;
use support::error::chain;
use support::reconcile::{Report, Retry, client_reason};

/// An error of reconciling.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// A request failed.
    #[error("failed to {what}")]
    Client {
        /// The operation and its object.
        what: String,
        /// Why.
        source: kube::Error,
    },
    /// Applying an object failed.
    #[error(transparent)]
    Apply(#[from] apply::Error),
    /// Several independent errors.
    #[error("{}", .0.iter().map(|error| chain(error)).collect::<Vec<_>>().join("; "))]
    Several(Vec<Error>),
    /// A prerequisite does not exist yet.
    #[error("waiting for {what}")]
    Waiting {
        /// What.
        what: String,
    },
    /// An object is invalid.
    #[error("invalid {object}: {problem}")]
    Form {
        /// The object.
        object: String,
        /// What is wrong.
        problem: String,
    },
}

impl Error {
    /// Creates an error of a failed request, for `map_err`.
    pub(super) fn client(what: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let what = what.into();
        move |source| Self::Client { what, source }
    }

    pub(super) fn waiting(what: impl Into<String>) -> Self {
        Self::Waiting { what: what.into() }
    }
}

impl Report for Error {
    fn reason(&self) -> &'static str {
        match self {
            Self::Client { source, .. } => client_reason(source),
            Self::Apply(error) => error.reason(),
            Self::Waiting { .. } => "Waiting",
            Self::Form { .. } => "UnexpectedAnswer",
            Self::Several(failed) => failed.first().map_or("Internal", Self::reason),
        }
    }

    fn retry(&self) -> Retry {
        Retry::Backoff
    }
}
