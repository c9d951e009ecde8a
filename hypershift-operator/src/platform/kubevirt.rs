//! Virtual machines by KubeVirt.

pub(crate) mod base_domain;
pub(crate) mod cache;
pub(crate) mod client;
mod csi_role;
mod disk;
pub(crate) mod infrastructure;
pub(crate) mod machines;
mod patches;
mod placement;
pub(crate) mod policy;
pub(crate) mod policy_event;
pub(crate) mod rights;
pub(crate) mod virtualization;

pub(crate) use placement::is_spread;
