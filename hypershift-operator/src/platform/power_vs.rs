//! IBM Power Virtual Server.

pub(crate) mod machines;
