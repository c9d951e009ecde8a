//! Nodes that users add themselves.

pub(crate) mod infrastructure;
