//! The load client's process: jobs in, outcomes out.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use load::wire::{Job, Outcome};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// A running load client. It ends with its standard input, so it never outlives this process.
#[derive(Debug)]
pub(super) struct Worker {
    child: Child,
    jobs: Option<ChildStdin>,
    outcomes: Lines<BufReader<ChildStdout>>,
}

// === impl Worker ===

impl Worker {
    /// Starts it.
    pub(super) fn start(program: &Path) -> Result<Self> {
        let mut child = Command::new(program)
            .arg("work")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let jobs = child.stdin.take();
        let outcomes = child
            .stdout
            .take()
            .context("the load client has no output")?;
        Ok(Self {
            child,
            jobs,
            outcomes: BufReader::new(outcomes).lines(),
        })
    }

    /// Gives it a job and waits for the outcome.
    pub(super) async fn perform(&mut self, job: &Job) -> Result<Outcome> {
        self.give(job).await?;
        self.outcome().await
    }

    /// Gives it a job.
    pub(super) async fn give(&mut self, job: &Job) -> Result<()> {
        let mut line = serde_json::to_string(job).context("cannot write the job down")?;
        line.push('\n');
        let jobs = self
            .jobs
            .as_mut()
            .context("the load client has been ended")?;
        jobs.write_all(line.as_bytes())
            .await
            .context("cannot give the load client a job")
    }

    /// The outcome of the job before.
    pub(super) async fn outcome(&mut self) -> Result<Outcome> {
        let line = self
            .outcomes
            .next_line()
            .await
            .context("cannot read from the load client")?;
        let line = line.context("the load client has ended: see its message above")?;
        match serde_json::from_str(&line).context("cannot understand the load client")? {
            Outcome::Failed(reason) => bail!(reason),
            outcome => Ok(outcome),
        }
    }

    /// Ends it.
    pub(super) async fn close(mut self) -> Result<()> {
        drop(self.jobs.take());
        let status = self
            .child
            .wait()
            .await
            .context("cannot wait for the load client")?;
        if !status.success() {
            bail!("the load client failed: {status}");
        }
        Ok(())
    }
}
