//! `cargo xtask soak migration`: migrations that are killed at every instant.

use std::process::ExitCode;

use anyhow::Result;
use api::group::Side;
use e2e::migration::crash;
use e2e::progress::Progress;
use e2e::testbed::Testbed;

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
    machines: usize,
}

/// Runs it; the first violation ends it.
pub(crate) async fn run(flags: &Migration) -> Result<ExitCode> {
    let mut testbed = Testbed::start("soak-migration", Progress::detect()).await?;
    let outcome = soak(&mut testbed, flags).await;
    println!("{}", testbed.finish(outcome)?);
    Ok(ExitCode::SUCCESS)
}

async fn soak(testbed: &mut Testbed, flags: &Migration) -> Result<crash::Tally> {
    for side in [Side::Standard, Side::Private] {
        testbed.install_crds(side).await?;
    }
    testbed.start_controller_manager().await?;
    let soak = crash::Soak {
        runs: flags.runs,
        seed: flags.seed,
        lanes: flags.lanes,
        machines: flags.machines,
    };
    crash::run(testbed, &soak).await
}
