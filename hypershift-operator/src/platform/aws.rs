//! AWS.

pub(crate) mod capacity;
mod identity;
pub(crate) mod infrastructure;
pub(crate) mod machines;
pub(crate) mod oidc;
mod profile;
