//! `cargo xtask demo`: a stranger sees it work.
//!
//! Where nodes can run, it is the whole product on a management cluster, installed by its own command. Elsewhere the
//! managers run as processes before a real API server, and it says so before it starts.

mod control_plane;
mod narration;
mod nodes;

use std::io::IsTerminal;
use std::process::ExitCode;

use anyhow::{Context, Result};
use testbed::node::{furnish, supported};
use testbed::progress::Progress;

use crate::manage::Level;
use testbed::signals;

/// Name of the demo's testbed.
const NAME: &str = "demo";
/// Name of the cluster that starts.
const CLUSTER: &str = "demo";
/// Exit code of a program that Ctrl-C has ended.
const INTERRUPTED: u8 = 130;

/// How the demo is run.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Keep it running until Ctrl-C, also when standard input is not a terminal.
    #[arg(long)]
    keep: bool,
    /// How much of a cluster it is shown on [default: node, where nodes can run].
    #[arg(long, value_enum)]
    level: Option<Level>,
}

/// Runs the demo. It ends by itself, or by Ctrl-C at a terminal; either way nothing is left.
pub(crate) async fn run(args: &Args) -> Result<ExitCode> {
    let stays = args.keep || std::io::stdin().is_terminal();
    let progress = Progress::detect();
    tokio::select! {
        result = whole(args.level, &progress, stays) => result.map(|()| ExitCode::SUCCESS),
        result = signals::terminated() => {
            result?;
            progress.note("ended; nothing is left behind");
            Ok(if stays { ExitCode::SUCCESS } else { ExitCode::from(INTERRUPTED) })
        }
    }
}

async fn whole(requested: Option<Level>, progress: &Progress, stays: bool) -> Result<()> {
    match level(requested, progress).await? {
        Level::Node => Box::pin(nodes::show(progress, stays)).await?,
        Level::ControlPlane => control_plane::show(progress, stays).await?,
    }
    progress.note("ended; nothing is left behind");
    Ok(())
}

/// The level that was requested; else the highest that this machine can have, and why it is not a higher one.
async fn level(requested: Option<Level>, progress: &Progress) -> Result<Level> {
    let can = match supported() {
        Ok(()) => furnish(progress).await,
        Err(reason) => Err(reason.into()),
    };
    match (requested, can) {
        (Some(Level::ControlPlane), _) => Ok(Level::ControlPlane),
        (Some(Level::Node) | None, Ok(())) => Ok(Level::Node),
        (Some(Level::Node), Err(reason)) => Err(reason).context("the demo cannot have nodes here"),
        (None, Err(reason)) => {
            progress.note(&format!("no nodes here: {reason:#}"));
            progress.note(
                "so nothing is installed and there are no pods: you will see the stock managers as processes, each \
                 with its own proxy, before a real API server",
            );
            Ok(Level::ControlPlane)
        }
    }
}

/// Keeps what is shown until a key is pressed.
async fn until_interrupted(stays: bool) {
    if stays {
        println!("  Ctrl-C ends it and removes everything.\n");
        std::future::pending::<()>().await;
    }
}
