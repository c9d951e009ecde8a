//! Virtual machines by KubeVirt.

pub(crate) mod infrastructure;
pub(crate) mod machines;
pub(crate) mod virtualization;
