//! Azure.

pub(crate) mod machines;
