//! Which of the two programs runs.

/// A program. Both have the commands for hosted clusters, with other defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    /// `hypershift`, for developers and those who run the operator.
    Hypershift,
    /// `hcp`, for users of hosted clusters.
    Hcp,
}
