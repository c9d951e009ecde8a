//! Errors of reconciling.

use support::apply;
use support::error::chain;
use support::reconcile::{Report, Retry, client_reason};

use super::resources::desired;

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
    /// An object of the hosted cluster cannot be built.
    #[error(transparent)]
    Desired(#[from] desired::Error),
    /// An object of the hosted cluster was not written.
    #[error(transparent)]
    Guest(#[from] desired::WriteError),
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

    /// The result of independent steps, from the errors of those that failed.
    pub(super) fn all(mut errors: Vec<Self>) -> Result<(), Self> {
        match errors.pop() {
            None => Ok(()),
            Some(only) if errors.is_empty() => Err(only),
            Some(last) => {
                errors.push(last);
                Err(Self::Several(errors))
            }
        }
    }
}

fn guest_reason(error: &desired::WriteError) -> &'static str {
    match error {
        desired::WriteError::Client { source, .. } => client_reason(source),
        desired::WriteError::Form { .. } => "UnexpectedAnswer",
        desired::WriteError::NotServed(_) | desired::WriteError::NoNamespace(_) => "NotFound",
    }
}

impl Report for Error {
    fn reason(&self) -> &'static str {
        match self {
            Self::Client { source, .. } => client_reason(source),
            Self::Apply(error) => error.reason(),
            Self::Desired(desired::Error::Missing { .. }) | Self::Waiting { .. } => "Waiting",
            Self::Desired(desired::Error::Invalid { .. }) => "UnexpectedAnswer",
            Self::Guest(error) => guest_reason(error),
            Self::Form { .. } => "UnexpectedAnswer",
            Self::Several(failed) => failed.first().map_or("Internal", Self::reason),
        }
    }

    fn retry(&self) -> Retry {
        Retry::Backoff
    }
}
