//! `cargo xtask bench migration`: how long a migration takes, and how many writes.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use api::group::CapiTypes;
use clap::Args;
use serde_json::json;
use testbed::migration::timing::{self, Figures, Fit};
use testbed::progress::Progress;
use testbed::testbed::Testbed;

/// Flags of `bench migration`.
#[derive(Debug, Args)]
pub(crate) struct Migration {
    /// Sizes to measure, in machines
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1, 100, 500])]
    machines: Vec<usize>,
    /// Write all figures to this file, too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Measures and prints.
pub(crate) async fn run(flags: &Migration) -> Result<ExitCode> {
    let mut testbed = Testbed::start("bench-migration", Progress::detect()).await?;
    let outcome = measure(&mut testbed, flags).await;
    let (figures, fit) = testbed.finish(outcome)?;
    println!("{}", table(&figures, fit));
    if let Some(path) = &flags.json {
        let document = json!({ "figures": figures, "fit": fit });
        std::fs::write(path, format!("{document:#}\n"))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn measure(testbed: &mut Testbed, flags: &Migration) -> Result<(Vec<Figures>, Fit)> {
    for capi_types in [CapiTypes::Standard, CapiTypes::Private] {
        testbed.install_crds(capi_types).await?;
    }
    testbed.start_controller_manager().await?;
    let mut figures = Vec::new();
    for &machines in &flags.machines {
        figures.push(timing::measure(testbed, machines).await?);
    }
    let fit = timing::fit(&figures);
    Ok((figures, fit))
}

fn table(figures: &[Figures], fit: Fit) -> String {
    let head =
        "| Machines | objects | seconds | writes | fewest possible |\n|---|---|---|---|---|\n";
    let rows = figures.iter().map(|row| {
        format!(
            "| {} | {} | {:.1} | {} | {} |\n",
            row.machines, row.objects, row.seconds, row.writes, row.ideal
        )
    });
    let rows: String = rows.collect();
    format!(
        "{head}{rows}\n{:.4} s for each machine and {:.1} s, R² = {:.4}",
        fit.each, fit.start, fit.r_squared
    )
}
