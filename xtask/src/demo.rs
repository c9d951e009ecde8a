//! `cargo xtask demo`: a stranger sees it work.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use api::group::{GroupTable, Side};
use e2e::cluster::{Cluster, Shape};
use e2e::fixtures;
use e2e::progress::Progress;
use e2e::testbed::Testbed;

use crate::testbed::{self, NAMESPACE, State};
use crate::{show, signals};

/// Name of the demo's testbed.
const NAME: &str = "demo";
/// How long the machines may take.
const RUNNING_WITHIN: Duration = Duration::from_mins(5);
/// How often the machines are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Exit code of a program that was told to end by Ctrl-C.
const INTERRUPTED: u8 = 130;

/// How the demo is run.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Keep it running until Ctrl-C, also when standard input is not a terminal.
    #[arg(long)]
    keep: bool,
}

/// Runs the demo. It ends by itself, or by Ctrl-C when there is somebody to press it; either way nothing is left.
pub(crate) async fn run(args: &Args) -> Result<ExitCode> {
    let stays = args.keep || std::io::stdin().is_terminal();
    let progress = Progress::detect();
    tokio::select! {
        result = whole(&progress, stays) => result.map(|()| ExitCode::SUCCESS),
        result = signals::told_to_end() => {
            result?;
            progress.note("ended; nothing is left behind");
            Ok(if stays { ExitCode::SUCCESS } else { ExitCode::from(INTERRUPTED) })
        }
    }
}

async fn whole(progress: &Progress, stays: bool) -> Result<()> {
    let (mut testbed, state) = testbed::bring_up(NAME, progress).await?;
    let outcome = act(&mut testbed, &state, stays).await;
    testbed.finish(outcome)?;
    progress.note("ended; nothing is left behind");
    Ok(())
}

async fn act(testbed: &mut Testbed, state: &State, stays: bool) -> Result<()> {
    let view = testbed.standard_view().await?;
    let step = testbed.progress.step(
        "a cluster of one control plane machine and three workers comes up, in the standard groups",
    );
    let values = [("NAMESPACE", NAMESPACE), ("NAME", "demo"), ("WORKERS", "3")];
    view.apply(&fixtures::render("cluster", &values)?).await?;
    let shape = Shape {
        control_plane: 1,
        workers: 3,
    };
    let cluster = Cluster::new(&view, NAMESPACE, "demo");
    tokio::select! {
        settled = cluster.settled(shape, RUNNING_WITHIN) => drop(settled?),
        never = narrate(&cluster, &testbed.progress) => match never {},
    }
    step.done();
    println!(
        "\n{}",
        show::both_views(&view, &testbed.admin, NAMESPACE).await?
    );
    println!("{}", stored(testbed).await?);
    println!("{}", show::instructions(state));
    if stays {
        println!("  Ctrl-C ends it and removes everything.\n");
        std::future::pending::<()>().await;
    }
    Ok(())
}

/// Tells what becomes of each machine, for as long as it is listened to.
async fn narrate(cluster: &Cluster, progress: &Progress) -> Infallible {
    let mut known = BTreeMap::new();
    loop {
        // A list that fails is only a line less.
        for machine in cluster.machines().await.unwrap_or_default() {
            let before = known.insert(machine.name.clone(), machine.phase.clone());
            if before.as_ref() != Some(&machine.phase) && !machine.phase.is_empty() {
                progress.note(&format!("  machine {} is {}", machine.name, machine.phase));
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// How many keys etcd holds in groups of each side.
async fn stored(testbed: &Testbed) -> Result<String> {
    let table = GroupTable::default();
    let keys = testbed.control_plane.etcd.keys("/registry/").await?;
    let count = |side: Side| {
        let groups = keys.iter().filter_map(|key| key.split('/').nth(2));
        groups
            .filter(|group| {
                table
                    .find(group.as_bytes())
                    .is_some_and(|(_, found)| found == side)
            })
            .count()
    };
    Ok(format!(
        "objects in etcd: {} in private groups, {} in standard groups",
        count(Side::Private),
        count(Side::Standard)
    ))
}
