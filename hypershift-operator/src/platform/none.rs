//! Nodes that somebody else brings.

pub(crate) mod infrastructure;
