//! The fuzz targets, each for a bounded time, where the toolchain for them is there.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use super::tally::Tally;
use crate::sources::root;

/// How long each target runs, in seconds.
const SECONDS: u32 = 10;
/// How much of a failed run is shown.
const TAIL_LINES: usize = 40;
/// Of cargo-fuzz.
const VERSION: &str = "0.13.2";

/// Runs every target; each is one check. Without a nightly toolchain nothing is run, which is reported.
pub(super) fn run() -> Result<Tally> {
    if !succeeds(cargo(&["--version"])) {
        println!("skipped: needs a nightly toolchain (rustup toolchain install nightly)");
        return Ok(Tally::skipped());
    }
    if !succeeds(cargo(&["fuzz", "--version"])) {
        install()?;
    }
    let mut total = Tally::default();
    for target in targets()? {
        total = total
            + match fuzz(&target) {
                Ok(()) => Tally::success(),
                Err(error) => {
                    println!("{error:#}");
                    Tally::failure()
                }
            };
    }
    Ok(total)
}

fn succeeds(mut command: Command) -> bool {
    let output = command.output();
    output.is_ok_and(|output| output.status.success())
}

/// Builds cargo-fuzz where the testbed's programs are kept, once.
fn install() -> Result<()> {
    println!("building cargo-fuzz {VERSION}");
    let mut command = cargo(&["install", "cargo-fuzz", "--locked", "--quiet", "--root"]);
    let status = command
        .arg(tools()?)
        .args(["--version", VERSION])
        .status()
        .context("failed to run cargo install")?;
    ensure!(status.success(), "failed to install cargo-fuzz: {status}");
    Ok(())
}

fn tools() -> Result<PathBuf> {
    Ok(crate::sources::cache()?.join(format!("cargo-fuzz-{VERSION}")))
}

/// The names of the targets: of their files.
fn targets() -> Result<Vec<String>> {
    let directory = root().join("capi-proxy/fuzz/fuzz_targets");
    let entries = std::fs::read_dir(&directory)
        .with_context(|| format!("failed to read {}", directory.display()))?;
    let mut targets = Vec::new();
    for entry in entries {
        let path = entry
            .with_context(|| format!("failed to read {}", directory.display()))?
            .path();
        targets.extend(name_of(&path));
    }
    targets.sort();
    Ok(targets)
}

fn name_of(path: &Path) -> Option<String> {
    Some(path.file_stem()?.to_str()?.to_owned())
}

fn fuzz(target: &str) -> Result<()> {
    println!("fuzzing {target} for {SECONDS} s");
    let corpus = format!("fuzz/corpus/{target}");
    std::fs::create_dir_all(root().join("capi-proxy").join(&corpus))
        .with_context(|| format!("failed to create {corpus}"))?;
    let output = cargo(&[
        "fuzz",
        "run",
        target,
        &corpus,
        &format!("fuzz/seeds/{target}"),
        "--",
    ])
    .arg(format!("-max_total_time={SECONDS}"))
    // The same inputs on each machine, within the time limit.
    .arg("-seed=1")
    .arg("-dict=fuzz/names.dict")
    .output()
    .context("failed to run cargo fuzz")?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = text.lines().collect();
    let tail = lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n");
    bail!("fuzz target {target} failed ({}):\n{tail}", output.status)
}

fn cargo(args: &[&str]) -> Command {
    // By rustup's cargo: the one that runs this program has a toolchain of its own.
    let mut command = Command::new("cargo");
    command
        .arg("+nightly")
        .args(args)
        .current_dir(root().join("capi-proxy"))
        .env_remove("RUSTUP_TOOLCHAIN")
        .env_remove("CARGO")
        .stdin(Stdio::null());
    if let Some(path) = path_with_tools() {
        command.env("PATH", path);
    }
    command
}

/// The search path, with our own cargo-fuzz behind what the machine has.
fn path_with_tools() -> Option<OsString> {
    let path = std::env::var_os("PATH")?;
    let own = tools().ok()?.join("bin");
    std::env::join_paths(std::env::split_paths(&path).chain([own])).ok()
}
