//! An account in which clusters are created and destroyed, one after another.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use testbed::calls::Call;
use testbed::progress::Progress;
use testbed::work_dir::WorkDir;

use super::account::Account;
use super::hcp::{Files, Hcp, Step};
use super::platform::Platform;
use super::points::Point;

/// An account, with the program.
pub(super) struct Lane {
    platform: Platform,
    program: PathBuf,
    account: Account,
    files: Files,
    /// Last, because the fake runs in it.
    _work_dir: Arc<WorkDir>,
}

/// What there is and what is called without interruptions.
pub(super) struct Undisturbed {
    before: Vec<String>,
    there: Vec<String>,
    /// The calls of each command.
    pub(super) creation: Vec<Vec<Call>>,
    pub(super) destruction: Vec<Vec<Call>>,
}

// === impl Lane ===

impl Lane {
    pub(super) async fn start(
        platform: Platform,
        number: usize,
        program: &Path,
        progress: &Progress,
    ) -> Result<Self> {
        let name = format!("from-nothing-{}-{number}", platform.name());
        let work_dir = Arc::new(WorkDir::open(&name)?);
        let files = Files::create(work_dir.path())?;
        Ok(Self {
            platform,
            program: program.to_owned(),
            account: platform.start(&work_dir, &files, progress).await?,
            files,
            _work_dir: work_dir,
        })
    }

    /// Creates and destroys a cluster's infrastructure.
    pub(super) async fn undisturbed(&self) -> Result<Undisturbed> {
        self.empty().await?;
        let before = self.account.contents().await?;
        let creation = self.run(self.platform.create(), None).await?;
        let there = self.account.contents().await?;
        let destruction = self.run(self.platform.destroy(), None).await?;
        let left = self.account.contents().await?;
        is_same(&before, &left).context("without interruptions, something is left")?;
        // Else nothing would be compared.
        if there.len() <= before.len() {
            bail!("without interruptions, nothing was created");
        }
        Ok(Undisturbed {
            before,
            there,
            creation,
            destruction,
        })
    }

    /// Creates with one interruption.
    pub(super) async fn is_created(&self, as_in: &Undisturbed, point: &Point) -> Result<()> {
        self.empty().await?;
        self.run(self.platform.create(), Some(point)).await?;
        is_same(&as_in.there, &self.account.contents().await?)
    }

    /// Creates without an interruption.
    pub(super) async fn is_prepared(&self) -> Result<()> {
        self.empty().await?;
        self.run(self.platform.create(), None).await.map(drop)
    }

    /// Destroys what there is, with one interruption.
    pub(super) async fn is_destroyed(&self, as_in: &Undisturbed, point: &Point) -> Result<()> {
        self.run(self.platform.destroy(), Some(point)).await?;
        is_same(&as_in.before, &self.account.contents().await?)
    }

    async fn empty(&self) -> Result<()> {
        self.files.delete_written()?;
        self.account.empty().await
    }

    /// Runs commands; the one that is killed is run again before the next one.
    async fn run(&self, steps: &[Step], point: Option<&Point>) -> Result<Vec<Vec<Call>>> {
        let hcp = Hcp {
            program: &self.program,
            account: &self.account,
            files: &self.files,
        };
        let mut calls = Vec::new();
        for (number, step) in steps.iter().enumerate() {
            if let Some(point) = point.filter(|point| point.step == number) {
                hcp.is_killed(*step, point.hold).await?;
            }
            calls.push(hcp.runs(*step).await?);
        }
        Ok(calls)
    }
}

/// Fails with the lines that are in one of two snapshots only, or more often in one.
fn is_same(expected: &[String], found: &[String]) -> Result<()> {
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for line in expected {
        counts.entry(line).or_default().0 += 1;
    }
    for line in found {
        counts.entry(line).or_default().1 += 1;
    }
    let different = counts.iter().filter(|(_, (first, second))| first != second);
    let different: Vec<_> = different
        .map(|(line, (first, second))| format!("{second} in place of {first}: {line}"))
        .collect();
    if !different.is_empty() {
        bail!("the cloud differs:\n{}", different.join("\n"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_compared_with_their_number() {
        let lines = |text: &str| {
            let lines = text.chars().map(|line| line.to_string());
            lines.collect::<Vec<_>>()
        };
        for (expected, found, difference) in [
            ("", "", ""),
            ("ab", "ba", ""),
            ("ab", "abb", "2 in place of 1: b"),
            ("ab", "a", "0 in place of 1: b"),
            ("", "a", "1 in place of 0: a"),
        ] {
            let result = is_same(&lines(expected), &lines(found));
            let message = result.err().map(|error| error.to_string());
            let message = message.unwrap_or_default();
            assert_eq!(message.is_empty(), difference.is_empty(), "{message}");
            assert!(message.ends_with(difference), "{message}");
        }
    }
}
