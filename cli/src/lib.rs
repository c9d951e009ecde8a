//! The `hypershift` command, as a library for its binary and for tests.
//!
//! Each verb is a module with its arguments and a `run`; what a verb decides is decided in pure code below it.

pub mod args;
pub mod crds;
pub mod doctor;
pub mod install;
mod progress;
pub mod uninstall;
mod usage;

pub use args::{Cli, run};
pub use usage::Usage;
