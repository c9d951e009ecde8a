//! The comparative benchmark of the proxy: our proxy and its peers, one after the other in every round of one run.
//!
//! ```text
//! load client ── direct ────────────────────── fake API server
//!            ├── TCP relay ──────────────────┤      (TLS)
//!            ├── nginx ──────────────────────┤
//!            ├── kubectl proxy ──────────────┤
//!            └── capi-proxy (rewriting) ─────┘
//! ```
//!
//! Figures are differences and ratios within the run: absolute times say more about the machine than about the peers.
//! The load client, the relay and the fake API server are crate `load`, built with optimisations; this module starts
//! the processes, assigns the jobs, reads `/proc`, and evaluates the figures.

pub mod control_plane;
pub mod figures;
pub mod fleet;
mod latency;
mod memory;
mod nginx;
mod peer;
mod plan;
mod programs;
mod stage;
mod start;
mod statistics;
pub mod table;
pub mod target;
mod throughput;
mod translation;
mod usage;
mod worker;

use std::time::Duration;

use anyhow::{Context, Result};
use figures::{Figures, Machine};
use plan::Plan;
use stage::Stage;
use testbed::progress::Progress;
use usage::Share;

/// No run, however slow the machine, may take longer.
const DEADLINE: Duration = Duration::from_mins(10);
/// Open files for a thousand watches with both types of a peer.
const OPEN_FILES: u64 = 8192;

/// How thorough a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Enough samples to evaluate.
    Full,
    /// Every part once, to see that the bench itself works.
    Quick,
}

/// Builds what is needed, measures, and gives the figures. Dropped before it is done, it ends its processes, too.
pub async fn run(depth: Depth, progress: &Progress) -> Result<Figures> {
    raise_open_files()?;
    let programs = programs::prepare(progress).await?;
    let measuring = measure(depth, &programs, progress);
    tokio::time::timeout(DEADLINE, measuring)
        .await
        .with_context(|| {
            format!(
                "the run took longer than {} minutes",
                DEADLINE.as_secs() / 60
            )
        })?
}

async fn measure(
    depth: Depth,
    programs: &programs::Programs,
    progress: &Progress,
) -> Result<Figures> {
    let plan = Plan::new(depth);
    let share = Share::start()?;
    let mut stage = Stage::open(programs).await?;
    let cold_starts = start::measure(&mut stage, &plan, progress).await?;
    let (calls, watch) = latency::measure(&mut stage, &plan, progress).await?;
    let throughput = throughput::measure(&mut stage, &plan, progress).await?;
    let memory = memory::measure(&mut stage, &plan, progress).await?;
    let translation = translation::measure(&mut stage, &plan, progress).await?;
    stage.close().await?;
    Ok(Figures {
        machine: Machine {
            cores: std::thread::available_parallelism()
                .context("cannot count the processors")?
                .get(),
            used_by_others: share.of_others()?,
        },
        peers: programs.versions(),
        calls,
        watch,
        throughput,
        memory,
        cold_starts,
        translation,
    })
}

/// The peers inherit the limit.
fn raise_open_files() -> Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= OPEN_FILES) {
        return Ok(());
    }
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(OPEN_FILES),
            maximum: limit.maximum,
        },
    )
    .with_context(|| format!("cannot open {OPEN_FILES} files: raise the hard limit (ulimit -Hn)"))
}
