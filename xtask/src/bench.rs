//! `cargo xtask bench`: figures, not tests. Nothing here fails because something is slow.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use e2e::bench::figures::Figures;
use e2e::bench::{self, Depth, table, target};
use e2e::progress::Progress;
use serde_json::json;

use crate::signals::told_to_end;

/// What to measure.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compare our proxy with a TCP relay, nginx and `kubectl proxy`, in one run on this machine
    ///
    /// Takes about five minutes, and more the first time: it builds what it needs. Everything stays on loopback and
    /// ends with the command, also after Ctrl-C. Let nothing else run meanwhile.
    Proxy(Proxy),
}

/// Flags of `bench proxy`.
#[derive(Debug, Args)]
pub(crate) struct Proxy {
    /// Measure too little to judge by, in less than a minute, to see that the bench itself works
    #[arg(long)]
    quick: bool,
    /// Write all figures and verdicts to this file, too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Measures and prints.
pub(crate) async fn run(command: &Command) -> Result<ExitCode> {
    let Command::Proxy(Proxy { quick, json }) = command;
    let depth = if *quick { Depth::Quick } else { Depth::Full };
    let progress = Progress::detect();
    let figures = tokio::select! {
        figures = bench::run(depth, &progress) => figures?,
        told = told_to_end() => return told.map(|()| ExitCode::FAILURE),
    };
    println!("{}", table::render(&figures));
    if let Some(path) = json {
        write_json(path, &figures)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn write_json(path: &Path, figures: &Figures) -> Result<()> {
    let document = json!({ "figures": figures, "targets": target::judge(figures) });
    std::fs::write(path, format!("{document:#}\n"))
        .with_context(|| format!("cannot write {}", path.display()))
}
