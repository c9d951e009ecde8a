//! AWS.

pub(crate) mod infrastructure;
pub(crate) mod machines;
pub(crate) mod roles;
