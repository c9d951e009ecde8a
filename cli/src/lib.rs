//! The commands `hypershift` and `hcp`, as a library for their binaries and for tests.
//!
//! Each verb is a module with its arguments and a `run`; what a verb decides is decided in pure code below it.

pub mod args;
mod console_logs;
pub mod crds;
mod create;
mod destroy;
pub mod doctor;
mod dump;
mod exit;
mod fix;
mod hosted;
mod infra;
pub mod install;
mod listed;
mod migrate;
mod oadp;
mod program;
mod progress;
mod scale;
pub mod uninstall;
mod usage;
mod version;
mod waiting;

pub use args::{Cli, Hcp, run, run_hcp};
pub use exit::outcome;
pub use usage::Usage;
