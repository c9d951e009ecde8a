//! Why an object cannot be built.

/// Why an object cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// An input does not exist yet.
    #[error("{object} needs {input}, which does not exist")]
    Missing {
        /// The object that needs it.
        object: String,
        /// The input.
        input: String,
    },
    /// An input has an unusable value.
    #[error("{object} cannot be built: {problem}")]
    Invalid {
        /// The object.
        object: String,
        /// The input, and what is wrong.
        problem: String,
    },
}

impl Error {
    pub(super) fn missing(object: impl Into<String>, input: impl Into<String>) -> Self {
        Self::Missing {
            object: object.into(),
            input: input.into(),
        }
    }

    pub(super) fn invalid(object: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Invalid {
            object: object.into(),
            problem: problem.into(),
        }
    }
}
