//! Programs of ours as processes: long ones with their log and their exit code, and ones that end with an error.

use std::path::Path;
use std::process::Output;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use testbed::process::{Launch, Process};
use testbed::wait;
use testbed::work_dir::WorkDir;
use tokio::process::Command;

use super::etcd::said;

/// How long a program may take to log, to serve or to end.
pub(super) const WITHIN: Duration = Duration::from_mins(1);

/// A program that runs until it gets a signal.
#[derive(Debug)]
pub(super) struct Running(Process);

impl Running {
    pub(super) fn start(launch: &Launch, work_dir: &WorkDir) -> Result<Self> {
        Ok(Self(launch.spawn(work_dir)?))
    }

    /// All that it has logged.
    pub(super) fn log(&self) -> String {
        testbed::process::tail(self.0.log(), usize::MAX)
    }

    /// Waits until its log has a text. Fails at once when it has ended.
    pub(super) async fn logs(&mut self, text: &str) -> Result<()> {
        let ended = wait::until(text, WITHIN, async || {
            if self.log().contains(text) {
                return Ok(None);
            }
            match self.0.exited()? {
                Some(status) => Ok(Some(status)),
                None => wait::not_yet(self.log()),
            }
        });
        let ended = ended.await?;
        ensure!(ended.is_none(), "it ended, {ended:?}: {}", self.log());
        Ok(())
    }

    /// Sends SIGTERM, and checks that it ends with 0.
    pub(super) async fn terminates(mut self) -> Result<()> {
        ensure!(self.0.exited()?.is_none(), "it ended: {}", self.log());
        self.0.signal(Signal::TERM);
        let status = wait::until("the program to end", WITHIN, async || {
            match self.0.exited()? {
                Some(status) => Ok(status),
                None => wait::not_yet("it runs"),
            }
        });
        let status = status.await?;
        ensure!(status.code() == Some(0), "{status}: {}", self.log());
        Ok(())
    }
}

/// Runs a program that is to end with this code and say this.
pub(super) async fn fails(
    program: &Path,
    args: &[String],
    environment: &[(&str, &str)],
    code: i32,
    text: &str,
) -> Result<()> {
    let output: Output = Command::new(program)
        .args(args)
        .env_remove("KUBECONFIG")
        .envs(environment.iter().copied())
        .kill_on_drop(true)
        .output()
        .await
        .with_context(|| format!("cannot run {}", program.display()))?;
    let said = said(&output);
    let found = output.status.code();
    ensure!(found == Some(code), "{args:?}: {found:?}: {said}");
    ensure!(said.contains(text), "{args:?}: {said}");
    Ok(())
}
