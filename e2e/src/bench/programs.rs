//! The programs of a run, built or fetched before anything is measured.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tokio::process::Command;

use super::nginx;
use crate::binaries::{Binaries, Binary};
use crate::progress::Progress;

/// How the Dockerfile builds what ships.
const STATIC_TARGET: &str = "x86_64-unknown-linux-gnu";
const STATIC_FLAGS: &str = "-C target-feature=+crt-static";

/// How a program is linked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Linking {
    Dynamic,
    /// As it ships.
    Static,
}

/// Where everything is.
#[derive(Debug)]
pub(super) struct Programs {
    /// The fake API server, the relay and the load client.
    pub(super) load: PathBuf,
    /// Our proxy.
    pub(super) proxy: PathBuf,
    /// nginx.
    pub(super) nginx: PathBuf,
    /// kubectl.
    pub(super) kubectl: PathBuf,
    versions: BTreeMap<String, String>,
}

// === impl Programs ===

impl Programs {
    /// The versions of the peers that are not ours.
    pub(super) fn versions(&self) -> BTreeMap<String, String> {
        self.versions.clone()
    }
}

/// Builds ours with optimisations, each package by itself so that it has its own features only, and finds the rest.
pub(super) async fn prepare(progress: &Progress) -> Result<Programs> {
    let proxy = release_build("capi-proxy", Linking::Static, progress).await?;
    let load = release_build("load", Linking::Dynamic, progress).await?;
    let kubectl = Binaries::ensure(&[Binary::Kubectl], progress)
        .await?
        .path(Binary::Kubectl)?
        .to_owned();
    let nginx = nginx::find(progress).await?;
    let versions = BTreeMap::from([
        ("kubectl".to_owned(), Binary::Kubectl.version()?),
        ("nginx".to_owned(), nginx::version(&nginx).await?),
    ]);
    Ok(Programs {
        load,
        proxy,
        nginx,
        kubectl,
        versions,
    })
}

/// Builds a package's program of the same name.
async fn release_build(package: &str, linking: Linking, progress: &Progress) -> Result<PathBuf> {
    let step = progress.step(format!("building {package} (release)"));
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["build", "--release", "--package", package, "--bin", package])
        .arg("--message-format=json-render-diagnostics");
    if linking == Linking::Static {
        // With a target, the flags are for the program only and not for build scripts.
        command
            .args(["--target", STATIC_TARGET])
            .env("RUSTFLAGS", STATIC_FLAGS);
    }
    let output = command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .context("cannot run cargo")?;
    if !output.status.success() {
        bail!(
            "cargo cannot build {package}:\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    step.done();
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .find_map(|message| executable(message, package))
        .with_context(|| format!("cargo built {package} but did not say where"))
}

/// The program that a message of cargo tells of.
fn executable(message: &str, package: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    let path = Path::new(message["executable"].as_str()?);
    (message["target"]["name"] == package).then(|| path.to_owned())
}
