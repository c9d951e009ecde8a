//! Names and types that every part of the system shares.
//!
//! - [`group`]: the table of API group pairs, standard and private. No other module spells a group's name.
//! - [`annotations`]: the annotations of the migration protocol on a HostedCluster. No other module spells them.
//! - [`conditions`]: the types and common reasons of conditions, as closed sets.
//! - [`features`]: the feature sets of the API.
//!
//! With the feature `types`, which is on by default, also the custom resources:
//!
//! - `hypershift::v1beta1`: hosted clusters, node pools, hosted control planes and what they are made of.
//! - `certificates::v1alpha1`, `scheduling::v1alpha1`, `audit_log_persistence::v1alpha1`: the smaller groups.
//! - `karpenter::v1`: what hosted clusters serve for nodes that Karpenter makes.
//! - `crds`: their definitions, as `cargo xtask codegen` writes them to `manifests/crds/` and, with the technology preview,
//!   to `manifests/crds-tech-preview/`.
//!
//! Without it there is no Kubernetes dependency here, so that the sidecar proxy stays small. There is never a client.

pub mod annotations;
#[cfg(feature = "types")]
pub mod audit_log_persistence;
#[cfg(feature = "types")]
pub mod certificates;
pub mod conditions;
#[cfg(feature = "types")]
pub mod crds;
pub mod features;
pub mod group;
#[cfg(feature = "types")]
pub mod hypershift;
#[cfg(feature = "types")]
pub mod karpenter;
pub mod names;
#[cfg(feature = "types")]
pub mod scheduling;
#[cfg(feature = "types")]
mod schema;
