//! kubectl in a cluster, with a time limit.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use testbed::hosted::{Fixture, Guest};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

/// For one command. Longer than a dial through the tunnel may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// Until a port is forwarded.
const FORWARDED_WITHIN: Duration = Duration::from_mins(1);

/// kubectl, as the administrator of a cluster.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kubectl<'a> {
    program: &'a Path,
    kubeconfig: &'a Path,
}

/// A forwarded port. It ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Forwarding {
    /// The port on loopback.
    pub(crate) port: u16,
    _kubectl: Child,
    /// kubectl reports each connection there.
    _output: BufReader<ChildStdout>,
}

// === impl Kubectl ===

impl<'a> Kubectl<'a> {
    /// In a hosted cluster.
    pub(crate) fn of(fixture: &'a Fixture, guest: &'a Guest) -> Self {
        Self {
            program: fixture.testbed.kubectl(),
            kubeconfig: &guest.kubeconfig,
        }
    }

    /// In the management cluster.
    pub(crate) fn of_management(fixture: &'a Fixture) -> Self {
        Self {
            program: fixture.testbed.kubectl(),
            kubeconfig: fixture.testbed.kubeconfig(),
        }
    }

    /// A command that ends when it is dropped.
    pub(crate) fn command(self, words: &[&str]) -> Command {
        let mut command = Command::new(self.program);
        command
            .arg("--kubeconfig")
            .arg(self.kubeconfig)
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// What a command prints. What it says when it fails is in the error.
    pub(crate) async fn says(self, words: &[&str]) -> Result<String> {
        self.says_within(words, PATIENCE).await
    }

    /// The same, with a time limit of its own.
    pub(crate) async fn says_within(self, words: &[&str], limit: Duration) -> Result<String> {
        let Ok(output) = timeout(limit, self.command(words).output()).await else {
            bail!("kubectl {} did not end in time", words.join(" "));
        };
        let output = output.context("cannot run kubectl")?;
        ensure!(
            output.status.success(),
            "kubectl {}: {}",
            words.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        );
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Forwards a port of loopback to a port of a pod: its name, `:PORT`, and flags.
    pub(crate) async fn forward(self, words: &[&str]) -> Result<Forwarding> {
        let words: Vec<_> = ["port-forward"].iter().chain(words).copied().collect();
        let mut kubectl = self.command(&words).spawn()?;
        let mut output = BufReader::new(kubectl.stdout.take().context("no output")?);
        let mut line = String::new();
        let read = timeout(FORWARDED_WITHIN, output.read_line(&mut line)).await;
        read.context("no port was forwarded in time")??;
        let port = port(&line).with_context(|| format!("it said {line:?}"))?;
        Ok(Forwarding {
            port,
            _kubectl: kubectl,
            _output: output,
        })
    }

    /// Runs a command in a pod; gives what it prints.
    pub(crate) async fn exec(self, pod: &str, line: &[&str]) -> Result<String> {
        let mut words = vec!["exec", pod, "--container=echo", "--"];
        words.extend(line);
        self.says(&words).await
    }
}

/// The port in `Forwarding from 127.0.0.1:40001 -> 8080`.
fn port(line: &str) -> Option<u16> {
    let (from, _) = line.split_once(" -> ")?;
    from.rsplit(':').next()?.parse().ok()
}
