//! `cargo xtask soak migration`: migrations that are killed at every instant; `migration-live`: one under load.

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

/// The test of a migration under load, and the program that it is in.
pub(super) const LIVE: [&str; 2] = [
    "migration_live",
    "migration_under_load_keeps_api_and_workers_available",
];
/// The variable that chooses its machines.
const PLATFORM: &str = "HYPERSHIFT_MIGRATION_PLATFORM";

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

/// Flags of `soak migration-live`.
#[derive(Debug, clap::Args)]
pub(crate) struct Live {
    /// The platform of the worker: the fake cloud of the testbed, its Agent service, or its KubeVirt
    #[arg(long, value_enum, default_value_t = Platform::Aws)]
    platform: Platform,
}

/// Platforms of a cluster that migrates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Platform {
    /// Instances.
    Aws,
    /// Hosts of an Agent service.
    Agent,
    /// Virtual machines.
    Kubevirt,
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

/// Runs that under load.
pub(crate) fn run_live(flags: &Live) -> Result<ExitCode> {
    let [program, test] = LIVE;
    let platform = flags.platform.name().to_owned();
    super::test(program, test, &[(PLATFORM, platform)])
}

// === impl Platform ===

impl Platform {
    /// How the test calls it.
    fn name(self) -> &'static str {
        match self {
            Self::Aws => "aws",
            Self::Agent => "agent",
            Self::Kubevirt => "kubevirt",
        }
    }
}

/// What the test of a migration under load must know: the variable, and its values.
#[cfg(test)]
pub(super) fn words_of_live() -> Vec<&'static str> {
    use clap::ValueEnum as _;
    let platforms = Platform::value_variants().iter();
    let names = platforms.map(|platform| platform.name());
    names.chain([PLATFORM]).collect()
}
