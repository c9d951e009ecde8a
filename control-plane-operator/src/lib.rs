//! The operator of one hosted control plane: how its components are built, as pure code.
//!
//! - [`component::sidecar`]: the proxy beside every controller that speaks Cluster API.

pub mod component;
