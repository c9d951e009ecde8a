//! The plan of a migration: one hosted cluster, from standard to private API groups, by steps that can be undone up to
//! one commit point and only completed after it.
//!
//! ```text
//! Plan > Lock > Pause > Quiesce > Copy > VerifyCopy > Reparent > Deploy > Health > COMMIT > Retire > Finish
//!        `--------------- on failure: undone, last first --------------'          `- only forward -'
//! ```
//!
//! - [`phase`]: the phases, their order, what undoes them, how long they may take.
//! - [`failure`]: why a migration is rolled back, and whether it is tried again by itself.
//!
//! Everything here is pure: it decides, and never reads a cluster or writes to one.

#![deny(missing_docs)]

pub mod failure;
pub mod phase;
