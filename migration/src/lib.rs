//! The plan of a migration: the objects of a cluster, from standard to private API groups and back, by steps that can be
//! undone up to one commit point and only completed after it.
//!
//! ```text
//! Plan > Lock > Pause > Quiesce > Copy > VerifyCopy > Reparent > Deploy > Health > COMMIT > Retire > Finish
//!        `--------------- on failure: undone, last first --------------'          `- only forward -'
//! ```
//!
//! - [`object`], [`snapshot`]: what is read.
//! - [`groups`]: which groups are moved, and the swap of their names in an object.
//! - [`inventory`]: a classification of every object; [`preflight`]: checks of the cluster; [`plan`]: both, as a dry run.
//! - [`target`]: the same object in the other group; [`reparent`]: new owners for what stays.
//! - [`verify`]: what must be true, as functions.
//! - [`journal`]: what is remembered between two steps.
//! - [`machine`]: what to do next.
//! - [`progress`]: how far it is.
//! - [`phase`]: the phases, their order, what undoes them, how long they may take.
//! - [`failure`]: why a migration is rolled back, and whether it is tried again by itself.
//!
//! All of it is pure: it decides, and never reads a cluster or writes to one. The crate `migration-executor` does.

#![deny(missing_docs)]

pub mod failure;
pub mod groups;
pub mod inventory;
pub mod journal;
pub mod machine;
pub mod object;
pub mod phase;
pub mod plan;
pub mod preflight;
pub mod progress;
pub mod reparent;
pub mod snapshot;
pub mod target;
pub mod verify;
