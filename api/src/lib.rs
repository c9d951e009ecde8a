//! Names that every part of the system shares.
//!
//! - [`group`]: the table of API group pairs, standard and private. No other module spells a group's name.
//! - [`annotations`]: the annotations of the migration protocol on a HostedCluster. No other module spells them.
//!
//! There is no client and no Kubernetes dependency here, so that the sidecar proxy stays small.

pub mod annotations;
pub mod group;
