//! What the rules look at: the tracked files and the crates.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("invariant: xtask is a directory of the workspace")
        .to_owned()
}

/// Where the testbed keeps built programs (`testbed/src/binaries.rs`): for tools that the gate builds.
pub(crate) fn cache() -> Result<PathBuf> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    let base = variable("HYPERSHIFT_TESTBED_CACHE")
        .or_else(|| variable("XDG_CACHE_HOME"))
        .or_else(|| std::env::home_dir().map(|home| home.join(".cache")))
        .context("there is no home directory: set HYPERSHIFT_TESTBED_CACHE")?;
    Ok(base.join("hypershift-testbed"))
}

/// The files that git knows or would add, relative to the root.
pub(crate) fn tracked() -> Result<Vec<String>> {
    let text = output(
        "git",
        &["ls-files", "--cached", "--others", "--exclude-standard"],
    )?;
    let mut files: Vec<_> = text.lines().map(str::to_owned).collect();
    files.retain(|file| root().join(file).is_file());
    Ok(files)
}

/// Whether a file is a Rust source.
pub(crate) fn is_rust(file: &str) -> bool {
    has_extension(file, "rs")
}

/// Whether a file is a page of Markdown.
pub(crate) fn is_markdown(file: &str) -> bool {
    has_extension(file, "md")
}

/// Whether a file has an extension.
pub(crate) fn has_extension(file: &str, extension: &str) -> bool {
    Path::new(file)
        .extension()
        .is_some_and(|it| it == extension)
}

/// The workspace's crates, as cargo describes them.
pub(crate) fn metadata() -> Result<Value> {
    let text = output(&cargo(), &["metadata", "--format-version=1", "--no-deps"])?;
    serde_json::from_str(&text).context("failed to parse the output of cargo metadata")
}

/// All crates that are built for Linux, those of others too: a line each, with its licence.
pub(crate) fn graph() -> Result<String> {
    let target = "--target=x86_64-unknown-linux-gnu";
    let edges = "--edges=normal,build,dev";
    let form = ["--prefix=none", "--format={p}|{l}"];
    let args = ["tree", "--workspace", "--locked", target, edges];
    output(&cargo(), &[&args[..], &form].concat())
}

/// The crates that ship with `package`, those of others too: a line each.
pub(crate) fn graph_of(package: &str) -> Result<String> {
    let args = ["tree", "--locked", "--edges=normal,build", "--prefix=none"];
    output(&cargo(), &[&args[..], &["--package", package]].concat())
}

fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

/// Reads a tracked file.
pub(crate) fn read(file: &str) -> Result<String> {
    let path = root().join(file);
    std::fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))
}

fn output(program: &str, args: &[&str]) -> Result<String> {
    let output = Command::new(program)
        .args(args)
        .current_dir(root())
        .output()
        .with_context(|| format!("failed to run {program}"))?;
    if !output.status.success() {
        bail!(
            "{program} {} failed: {}",
            args.join(" "),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
