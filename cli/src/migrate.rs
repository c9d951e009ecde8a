//! `migrate`: moves hosted clusters between standard and private API groups.
//!
//! The operator carries out the migrations: `plan` and `status` show them, `retry` and `rollback` request them. `groups`
//! migrates without an operator, for other systems.

mod fleet;
mod groups;
mod plan;
mod request;
mod retry;
mod rollback;
mod status;

use clap::Subcommand;

pub(crate) use groups::RolledBack;

/// What can be migrated.
#[derive(Debug, Subcommand)]
pub(crate) enum Migrate {
    /// Show what the migration of hosted clusters would do, and what prevents it; write nothing
    Plan(plan::Plan),
    /// Show the state of each hosted cluster's migration to private types, and what prevents it
    Status(status::Status),
    /// Retry migrations that failed or were held
    Retry(retry::Retry),
    /// Request a rollback from private to standard types
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
