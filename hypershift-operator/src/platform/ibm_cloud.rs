//! IBM Cloud.

pub(crate) mod infrastructure;
