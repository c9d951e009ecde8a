//! `control-plane-operator sync-global-pullsecret`: keeps the pull secret of a node equal to that of the cluster.
//!
//! `DaemonSet` `global-pull-secret-syncer` runs it on nodes, privileged. The file is replaced as a whole: what users add is
//! merged in the cluster, and not on the node. kubelet reads its file at the start only, so it is restarted after a change;
//! if that fails, the file gets its previous content back.

mod dbus;
mod files;
mod systemd;

use std::time::Duration;

use support::args::LoggingArgs;
use support::error::chain;
use support::shutdown::Drain;

use crate::error::Failure;
use crate::tool::{self, LogFilter};
use files::Files;
use systemd::Systemd;

/// Time between two comparisons.
const PERIOD: Duration = Duration::from_secs(30);
/// How often kubelet is restarted before the change is undone.
const ATTEMPTS: u32 = 3;
/// What reads the file.
const UNIT: &str = "kubelet.service";

/// The flags of `sync-global-pullsecret`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = FILES)]
pub struct Args {
    /// Logging flags.
    #[command(flatten, next_help_heading = "Logging")]
    pub logging: LoggingArgs,
}

const FILES: &str = "\
Files:
  /etc/global-pull-secret/.dockerconfigjson    the pull secret with additions of users, if there are any
  /etc/original-pull-secret/.dockerconfigjson  the pull secret of the cluster otherwise
  /var/lib/kubelet/config.json                 written when it differs; kubelet.service is then restarted
                                               through /var/run/dbus/system_bus_socket

The files are compared at the start and every 30 seconds. Failures are logged and retried.";

/// Restarts what reads the file.
trait Restart {
    fn restart(&self, unit: &str) -> impl Future<Output = Result<(), systemd::Error>>;
}

/// What a comparison led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Unchanged,
    Replaced,
}

/// The node could not be brought up to date.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Files(#[from] files::Error),
    /// The previous content is back.
    #[error(
        "failed to restart {UNIT} after {ATTEMPTS} attempts, and restored its pull secret: check the unit on this node"
    )]
    Restart(#[source] systemd::Error),
    /// The new content is still there, and kubelet may not have read it.
    #[error("failed to restart {UNIT} ({restart}), and to restore its pull secret")]
    Restore {
        restart: String,
        source: files::Error,
    },
}

/// Runs until SIGTERM or SIGINT.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    tool::serve(&args.logging, async |drain| {
        keep(&Files::of_node(), &Systemd::of_node(), drain).await;
        Ok(())
    })
}

/// Compares until the drain begins. A change that has begun is completed: a new file whose kubelet was not restarted
/// would look like one that is up to date.
async fn keep(files: &Files, units: &impl Restart, mut drain: Drain) {
    let mut filter = LogFilter::default();
    loop {
        match sync(files, units).await {
            Ok(Outcome::Replaced) => tracing::info!(unit = UNIT, "Replaced the pull secret"),
            Ok(Outcome::Unchanged) => {}
            Err(error) => {
                let error = chain(&error);
                if filter.is_new(&error) {
                    tracing::error!(error, "Failed to update the pull secret");
                }
            }
        }
        tokio::select! {
            () = tokio::time::sleep(PERIOD) => {}
            () = drain.begun() => return,
        }
    }
}

/// Replaces the file and restarts kubelet, if the content differs.
async fn sync(files: &Files, units: &impl Restart) -> Result<Outcome, Error> {
    let desired = files.desired()?;
    let current = files.current()?;
    if current
        .as_deref()
        .is_some_and(|current| is_same(current, &desired))
    {
        return Ok(Outcome::Unchanged);
    }
    files.replace(&desired)?;
    let Err(error) = restarted(units).await else {
        return Ok(Outcome::Replaced);
    };
    match files.restore(current.as_deref()) {
        Ok(()) => Err(Error::Restart(error)),
        Err(source) => Err(Error::Restore {
            restart: chain(&error),
            source,
        }),
    }
}

/// Whether the contents are equal, except for newlines at the end.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let trimmed = |mut bytes: &[u8]| -> usize {
        while let [rest @ .., b'\n' | b'\r'] = bytes {
            bytes = rest;
        }
        bytes.len()
    };
    one[..trimmed(one)] == other[..trimmed(other)]
}

async fn restarted(units: &impl Restart) -> Result<(), systemd::Error> {
    let mut attempt = 1;
    loop {
        let Err(error) = units.restart(UNIT).await else {
            return Ok(());
        };
        if attempt == ATTEMPTS {
            return Err(error);
        }
        tracing::warn!(
            unit = UNIT,
            attempt,
            error = chain(&error),
            "Failed to restart"
        );
        tokio::time::sleep(Duration::from_secs(attempt.into())).await;
        attempt += 1;
    }
}

#[cfg(test)]
mod tests;
