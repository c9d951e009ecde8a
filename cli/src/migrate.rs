//! `migrate`: from one name of the API groups to the other.
//!
//! The operator migrates hosted clusters, if it may: `plan`, `status`, `retry` and `rollback` tell of that and ask for
//! it. `groups` is the migration alone, for other systems.

mod fleet;
mod groups;
mod plan;
mod retry;
mod rollback;
mod status;
mod wish;

use clap::Subcommand;

pub(crate) use groups::RolledBack;

/// What can be migrated.
#[derive(Debug, Subcommand)]
pub(crate) enum Migrate {
    /// Show what the migration of hosted clusters would do, and what speaks against it; write nothing
    Plan(plan::Plan),
    /// Show where hosted clusters stand on their way to private types, and what is in the way
    Status(status::Status),
    /// Have migrations tried again that failed or were held
    Retry(retry::Retry),
    /// Ask for the way back from private to standard types
    Rollback(rollback::Rollback),
    /// Move all objects of API groups in a namespace to other groups, with their status, owners and history
    Groups(groups::Groups),
}

/// Runs `migrate`.
pub(crate) fn run(migrate: &Migrate) -> anyhow::Result<()> {
    match migrate {
        Migrate::Plan(plan) => plan.run(),
        Migrate::Status(status) => status.run(),
        Migrate::Retry(retry) => retry.run(),
        Migrate::Rollback(rollback) => rollback.run(),
        Migrate::Groups(groups) => groups.run(),
    }
}
