//! `migrate`: from one name of the API groups to the other.

mod groups;

use clap::Subcommand;

pub(crate) use groups::RolledBack;

/// What can be migrated.
#[derive(Debug, Subcommand)]
pub(crate) enum Migrate {
    /// Move all objects of API groups in a namespace to other groups, with their status, owners and history
    Groups(groups::Groups),
}

/// Runs `migrate`.
pub(crate) fn run(migrate: &Migrate) -> anyhow::Result<()> {
    match migrate {
        Migrate::Groups(groups) => groups.run(),
    }
}
