//! Machines that an Agent service discovers.

pub(crate) mod infrastructure;
pub(crate) mod machines;
