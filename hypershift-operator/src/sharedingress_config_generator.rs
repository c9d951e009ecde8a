//! `hypershift-operator sharedingress-config-generator`: the configuration of the ingress that hosted clusters share.
//!
//! It runs beside haproxy, in each replica, so there is no leader election:
//!
//! ```text
//! watches ──> clusters: whose is what ──> config: text ──> file, if it differs ──> reload, coalesced
//! ```
//!
//! An object that cannot be used takes only what it describes out of the configuration.

mod clusters;
mod config;
mod file;
mod objects;
mod reload;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use support::error::chain;
use tokio::time::Instant;

use crate::args::SharedIngressArgs;
use crate::error::Fatal;
use crate::program::{self, Signal};
use objects::Stores;
use reload::{Master, Schedule};

/// Name of the file in a directory.
const FILE: &str = "haproxy.cfg";
/// Changes within this time are one.
const DEBOUNCE: Duration = Duration::from_millis(200);

/// Runs until SIGTERM or SIGINT.
pub(crate) fn run(args: &SharedIngressArgs) -> Result<(), Fatal> {
    let path = path(&args.config_path);
    let directory = path.parent().filter(|it| it.is_dir());
    if directory.is_none() {
        return Err(Fatal::Usage {
            message: format!(
                "--config-path {}: the directory does not exist",
                path.display()
            ),
        });
    }
    let master = Master::at(args.haproxy_socket_path.clone());
    program::run(&args.logging, Signal::Ends, async {
        let config = support::client::config(&args.api_server).await?;
        let client = support::client::connect(&config).map_err(Fatal::Connect)?;
        let stores = Stores::watch(&client);
        generate(&stores, &path, &master).await;
        Ok(())
    })
}

/// The file that a path means: a directory is that of the file.
fn path(path: &Path) -> PathBuf {
    if path.is_dir() {
        return path.join(FILE);
    }
    path.to_owned()
}

/// Writes the file and reloads haproxy, whenever something changes.
async fn generate(stores: &Stores, path: &Path, master: &Master) {
    let mut schedule = Schedule::default();
    let mut known = BTreeSet::new();
    let mut is_first = true;
    loop {
        tokio::select! {
            () = stores.changed() => {
                tokio::time::sleep(DEBOUNCE).await;
                let Some(objects) = stores.objects() else {
                    continue;
                };
                let (clusters, skipped) = clusters::evaluate(&objects);
                log(&mut known, skipped);
                match file::write(path, &config::render(&clusters)) {
                    // haproxy may not have read the file that the previous process wrote.
                    Ok(is_new) if is_new || is_first => {
                        schedule.written(Instant::now());
                        is_first = false;
                    }
                    Ok(_) => {}
                    Err(error) => {
                        let error = chain(&error);
                        tracing::error!(error, "Failed to write the configuration");
                    }
                }
            }
            () = schedule.due() => {
                let reloaded = master.reload().await;
                if let Err(error) = &reloaded {
                    tracing::error!(error = chain(error), "Failed to reload haproxy");
                } else {
                    tracing::info!("Reloaded haproxy");
                }
                schedule.reloaded(reloaded.is_ok(), Instant::now());
            }
        }
    }
}

/// Logs what is not served, once.
fn log(known: &mut BTreeSet<clusters::Skipped>, skipped: BTreeSet<clusters::Skipped>) {
    for clusters::Skipped { cluster, reason } in skipped.difference(known) {
        tracing::warn!(cluster, reason, "Skipping");
    }
    *known = skipped;
}

#[cfg(test)]
mod tests;
