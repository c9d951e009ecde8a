//! Commands of `hcp`, run to their end or killed at a call.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use testbed::calls::{Call, Hold};
use tokio::process::Command;
use tokio::time::timeout;

use super::account::Account;

/// How long a command may take.
const WITHIN: Duration = Duration::from_mins(10);

/// A command, by its words.
#[derive(Clone, Copy)]
pub(super) enum Step {
    /// One that needs nothing of earlier commands but, perhaps, a file.
    Plain(fn(&Files) -> Vec<String>),
    /// One with words of a file that an earlier command has written.
    Reading(fn(&Files) -> Result<Vec<String>>),
}

/// Files of commands.
pub(super) struct Files {
    /// Credentials and keys.
    kept: PathBuf,
    /// What commands write, for one cluster.
    written: PathBuf,
}

/// The program with an account.
pub(super) struct Hcp<'a> {
    pub(super) program: &'a Path,
    pub(super) account: &'a Account,
    pub(super) files: &'a Files,
}

// === impl Step ===

impl Step {
    fn words(self, files: &Files) -> Result<Vec<String>> {
        match self {
            Self::Plain(words) => Ok(words(files)),
            Self::Reading(words) => words(files),
        }
    }
}

// === impl Files ===

impl Files {
    pub(super) fn create(directory: &Path) -> Result<Self> {
        let files = Self {
            kept: directory.join("kept"),
            written: directory.join("written"),
        };
        for part in [&files.kept, &files.written] {
            std::fs::create_dir_all(part)
                .with_context(|| format!("cannot create {}", part.display()))?;
        }
        Ok(files)
    }

    /// The path of a file of credentials or keys.
    pub(super) fn kept(&self, name: &str) -> PathBuf {
        self.kept.join(name)
    }

    /// The path of a file that a command writes.
    pub(super) fn written(&self, name: &str) -> PathBuf {
        self.written.join(name)
    }

    /// Deletes what commands have written.
    pub(super) fn delete_written(&self) -> Result<()> {
        std::fs::remove_dir_all(&self.written)?;
        std::fs::create_dir(&self.written)?;
        Ok(())
    }
}

// === impl Hcp ===

impl Hcp<'_> {
    /// Runs a command to its end; gives its calls.
    pub(super) async fn runs(&self, step: Step) -> Result<Vec<Call>> {
        let words = step.words(self.files)?;
        let what = || format!("hcp {}", words.join(" "));
        let calls = self.account.calls();
        calls.restart(None);
        let mut command = self.command(&words);
        let running = command.kill_on_drop(true).output();
        let output = timeout(WITHIN, running).await;
        let output = output.with_context(|| format!("{} does not end", what()))??;
        let said = String::from_utf8_lossy(&output.stderr);
        let status = output.status;
        ensure!(status.success(), "{} failed ({status}): {said}", what());
        Ok(calls.calls())
    }

    /// Runs a command until one of its calls is held, and kills it then.
    pub(super) async fn is_killed(&self, step: Step, hold: Hold) -> Result<()> {
        let words = step.words(self.files)?;
        let mut command = self.command(&words);
        let killed = self.account.calls().kill_at(&mut command, hold).await;
        let killed = killed.with_context(|| format!("hcp {}", words.join(" ")));
        killed.map(drop)
    }

    fn command(&self, words: &[String]) -> Command {
        let mut command = Command::new(self.program);
        command.args(words);
        self.account.configure(&mut command);
        command
    }
}
