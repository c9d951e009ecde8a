//! `cargo xtask soak migration`: migrations that are killed at every instant.

use std::process::ExitCode;

use anyhow::Result;

/// The test, and the program that it is in.
pub(super) const KILLED: [&str; 2] = ["migration", "migrations_end_on_one_side_after_any_crash"];
/// The variables that say how much is tried: runs, seed, clusters side by side, machines.
pub(super) const VARIABLES: [&str; 4] = [
    "HYPERSHIFT_MIGRATION_RUNS",
    "HYPERSHIFT_MIGRATION_SEED",
    "HYPERSHIFT_MIGRATION_LANES",
    "HYPERSHIFT_MIGRATION_MACHINES",
];

/// Flags of `soak migration`.
#[derive(Debug, clap::Args)]
pub(crate) struct Migration {
    /// How many migrations are begun
    #[arg(long, value_name = "N", default_value_t = 1000)]
    runs: u64,
    /// What varies is computed from this
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// How many clusters are moved side by side
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=16))]
    lanes: u64,
    /// How many machines each has
    #[arg(long, value_name = "N", default_value_t = 2)]
    machines: u64,
}

/// Runs it; the first violation ends it.
pub(crate) fn run(flags: &Migration) -> Result<ExitCode> {
    let Migration {
        runs,
        seed,
        lanes,
        machines,
    } = *flags;
    let values = [runs, seed, lanes, machines].map(|value| value.to_string());
    let variables: Vec<_> = VARIABLES.into_iter().zip(values).collect();
    let [program, test] = KILLED;
    super::test(program, test, &variables)
}
