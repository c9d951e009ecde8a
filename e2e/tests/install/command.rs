//! The `hypershift` command as a user runs it.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail, ensure};
use testbed::cargo::command_line;
use testbed::progress::Progress;
use tokio::process::{Child, Command};

/// Where the operator is installed.
pub(crate) const NAMESPACE: &str = "hypershift";
const INSTALL: [&str; 7] = [
    "install",
    "--private-capi-types",
    "--private-crds-from=module=sigs.k8s.io/cluster-api",
    "--private-crds-from=module=sigs.k8s.io/cluster-api/test",
    "--capi-proxy-image=registry.example.com/capi-proxy:v1",
    // Nothing runs pods here.
    "--wait-until-available=false",
    "--timeout=2m",
];
const IMAGE: &str = "--hypershift-image=registry.example.com/hypershift-operator:v1";

/// The command, and the user who runs it.
#[derive(Debug, Clone)]
pub(crate) struct Hypershift {
    program: PathBuf,
    kubeconfig: PathBuf,
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Run {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

// === impl Hypershift ===

impl Hypershift {
    /// Builds the command; the user of the kubeconfig runs it.
    pub(crate) async fn build(kubeconfig: &Path, progress: &Progress) -> Result<Self> {
        let kubeconfig = kubeconfig.to_owned();
        let program = command_line(progress).await?;
        Ok(Self {
            program,
            kubeconfig,
        })
    }

    /// The same command, run by another user.
    pub(crate) fn as_user(&self, kubeconfig: &Path) -> Self {
        Self {
            kubeconfig: kubeconfig.to_owned(),
            ..self.clone()
        }
    }

    /// Installs. A flag given here replaces the default one.
    pub(crate) async fn install(&self, flags: &[&str]) -> Result<Run> {
        self.run(&with_image(flags)).await
    }

    /// Begins to install.
    pub(crate) fn begin(&self) -> Result<Child> {
        self.command(&with_image(&[]))
            .spawn()
            .context("cannot start hypershift")
    }

    /// Runs any verb.
    pub(crate) async fn run(&self, arguments: &[&str]) -> Result<Run> {
        let output = self
            .command(arguments)
            .output()
            .await
            .context("cannot run hypershift")?;
        Ok(Run {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }
}

fn with_image<'a>(flags: &[&'a str]) -> Vec<&'a str> {
    let mut all: Vec<&str> = INSTALL.to_vec();
    if !flags
        .iter()
        .any(|flag| flag.starts_with("--hypershift-image"))
    {
        all.push(IMAGE);
    }
    all.extend(flags);
    all
}

// === impl Run ===

impl Run {
    /// What it printed, if it succeeded.
    pub(crate) fn succeeded(self) -> Result<String> {
        ensure!(
            self.code == Some(0),
            "hypershift ended with {:?}:\n{}{}",
            self.code,
            self.stdout,
            self.stderr
        );
        Ok(self.stdout)
    }

    /// What it said while it worked, if it succeeded.
    pub(crate) fn remarks(self) -> Result<String> {
        let remarks = self.stderr.clone();
        self.succeeded().map(|_| remarks)
    }

    /// Whether it failed with a message that has these texts.
    pub(crate) fn failed_with(&self, words: &str) -> bool {
        self.code == Some(1) && self.stderr.contains(words)
    }

    /// Fails unless it was refused with a message that has these texts.
    pub(crate) fn refused(&self, words: &[&str]) -> Result<()> {
        ensure!(
            self.code == Some(1) && self.stderr.contains("nothing was changed"),
            "hypershift did not refuse but ended with {:?}:\n{}",
            self.code,
            self.stderr
        );
        for word in words {
            if !self.stderr.contains(word) {
                bail!("{word:?} is not in the refusal:\n{}", self.stderr);
            }
        }
        Ok(())
    }
}
