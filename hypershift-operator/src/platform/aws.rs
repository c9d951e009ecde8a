//! AWS.

pub(crate) mod infrastructure;
pub(crate) mod machines;
mod profile;
