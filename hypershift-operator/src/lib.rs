//! The operator of hosted clusters and node pools: its decisions, as pure code.
//!
//! - [`scope`]: which operator may write to a hosted cluster.

pub mod scope;
