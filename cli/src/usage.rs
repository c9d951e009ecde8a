//! Wrong usage, which ends with another exit status than failure.

use std::fmt;

/// Arguments that are well-formed one by one and make no sense together.
#[derive(Debug, thiserror::Error)]
#[error("{0}: see --help")]
pub struct Usage(String);

impl Usage {
    /// A message that says what is wrong.
    pub fn new(message: &dyn fmt::Display) -> Self {
        Self(message.to_string())
    }
}
