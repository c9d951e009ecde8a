//! What the rules look at: the tracked files and the crates.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// The workspace's crates.
#[derive(Debug, Deserialize)]
pub(super) struct Metadata {
    pub(super) packages: Vec<Package>,
}

/// A crate.
#[derive(Debug, Deserialize)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) dependencies: Vec<Dependency>,
}

/// What a crate depends on.
#[derive(Debug, Deserialize)]
pub(super) struct Dependency {
    pub(super) name: String,
    /// `dev`, `build`, or nothing for an ordinary one.
    pub(super) kind: Option<String>,
}

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("invariant: xtask is a directory of the workspace")
        .to_owned()
}

/// The files that git knows or would add, relative to the root.
pub(super) fn tracked() -> Result<Vec<String>> {
    let text = output(
        "git",
        &["ls-files", "--cached", "--others", "--exclude-standard"],
    )?;
    let mut files: Vec<_> = text.lines().map(str::to_owned).collect();
    files.retain(|file| root().join(file).is_file());
    Ok(files)
}

/// Whether a file is a Rust source.
pub(super) fn is_rust(file: &str) -> bool {
    Path::new(file)
        .extension()
        .is_some_and(|ending| ending == "rs")
}

/// The crates, as cargo knows them.
pub(super) fn metadata() -> Result<Metadata> {
    let text = output(&cargo(), &["metadata", "--format-version=1", "--no-deps"])?;
    serde_json::from_str(&text).context("cannot parse what cargo metadata says")
}

/// All crates that are built for Linux, those of others too: a line each, with its licence.
pub(super) fn graph() -> Result<String> {
    let target = "--target=x86_64-unknown-linux-gnu";
    let edges = "--edges=normal,build,dev";
    let form = ["--prefix=none", "--format={p}|{l}"];
    let args = ["tree", "--workspace", "--locked", target, edges];
    output(&cargo(), &[&args[..], &form].concat())
}

fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

/// Reads a tracked file.
pub(super) fn read(file: &str) -> Result<String> {
    let path = root().join(file);
    std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

fn output(program: &str, args: &[&str]) -> Result<String> {
    let output = Command::new(program)
        .args(args)
        .current_dir(root())
        .output()
        .with_context(|| format!("cannot run {program}"))?;
    if !output.status.success() {
        bail!(
            "{program} {} failed: {}",
            args.join(" "),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
