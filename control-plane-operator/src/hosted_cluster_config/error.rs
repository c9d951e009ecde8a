//! Why a pass could not do all that it should.

use support::apply;
use support::error::chain;
use support::reconcile::{Report, Retry, client_reason};

/// What failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// The API server refused, or was not reached.
    #[error("cannot {what}")]
    Client {
        /// What was attempted, with its object.
        what: String,
        /// Why.
        source: kube::Error,
    },
    /// An object could not be written.
    #[error(transparent)]
    Apply(#[from] apply::Error),
    /// Several things failed, one independently of the other.
    #[error("{}", .0.iter().map(|error| chain(error)).collect::<Vec<_>>().join("; "))]
    Several(Vec<Error>),
    /// Something that is needed is not there yet.
    #[error("waiting for {what}")]
    Waiting {
        /// What.
        what: String,
    },
    /// An object is not what it should be.
    #[error("{object} cannot be used: {problem}")]
    Form {
        /// The object.
        object: String,
        /// What is wrong.
        problem: String,
    },
}

impl Error {
    /// What was attempted, for `map_err`.
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
