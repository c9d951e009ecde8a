//! AWS.

pub(crate) mod capacity;
pub(crate) mod infrastructure;
pub(crate) mod machines;
mod profile;
