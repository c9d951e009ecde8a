//! Running cargo and reading what its tests say.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use super::tally::Tally;

/// Runs cargo; that it succeeds is one check.
pub(super) async fn check(args: &[&str], environment: &[(&str, &str)]) -> Result<Tally> {
    let status = cargo(args, environment)
        .status()
        .await
        .context("cannot run cargo")?;
    if !status.success() {
        bail!("cargo {} failed ({status})", args.join(" "));
    }
    Ok(Tally::success())
}

/// Runs tests, shows what they print, and counts them.
pub(super) async fn tests(args: &[&str]) -> Result<Tally> {
    let mut child = cargo(args, &[])
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run cargo")?;
    let output = child
        .stdout
        .take()
        .expect("invariant: standard output is a pipe");
    let mut lines = BufReader::new(output).lines();
    let mut total = Tally::default();
    while let Some(line) = lines
        .next_line()
        .await
        .context("cannot read what the tests print")?
    {
        println!("{line}");
        total = total + Tally::of_line(&line).unwrap_or_default();
    }
    let status = child.wait().await.context("cannot ask after cargo")?;
    if !status.success() && total.failed == 0 {
        // It did not build, or a test binary died.
        total = total + Tally::failure();
    }
    Ok(total)
}

/// A cargo command that asks nothing and ends with this program.
pub(super) fn cargo(args: &[&str], environment: &[(&str, &str)]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(program);
    command
        .args(args)
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .kill_on_drop(true);
    if std::io::stdout().is_terminal() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    command
}
