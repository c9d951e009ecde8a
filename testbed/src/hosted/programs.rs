//! The commands of this tree, as a user at a terminal runs them.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use tokio::process::Command;

use crate::cargo::{Program, command_line};
use crate::progress::Progress;
use crate::terminal;

/// Environment variable that names a built `hcp`, so that none is built.
const HCP: &str = "HYPERSHIFT_HCP";

/// The commands.
#[derive(Debug, Clone)]
pub struct Programs {
    /// For those who install.
    pub hypershift: PathBuf,
    /// For those who use it.
    pub hcp: PathBuf,
}

// === impl Programs ===

impl Programs {
    /// Builds them, unless the environment names them.
    pub async fn build(progress: &Progress) -> Result<Self> {
        Ok(Self {
            hypershift: command_line(progress).await?,
            hcp: Program::dev("cli", "hcp").find(HCP, progress).await?,
        })
    }
}

/// Runs a program; gives what it says.
pub(super) async fn run(program: &Path, args: &[String], kubeconfig: &Path) -> Result<String> {
    run_command(Command::new(program), args, kubeconfig).await
}

/// The same with what a command has already, such as variables.
pub(super) async fn run_command(
    mut command: Command,
    args: &[String],
    kubeconfig: &Path,
) -> Result<String> {
    let (code, said) = terminal::run(command.args(args), kubeconfig).await?;
    ensure!(
        code == 0,
        "{} {} failed ({code}): {said}",
        command.as_std().get_program().display(),
        args.join(" ")
    );
    Ok(said)
}

/// A flag whose values add up.
const REPEATED: &str = "--annotations";

/// Default arguments with the given ones: a given flag replaces the default one of its name, or adds to it.
pub(super) fn with(usual: Vec<String>, given: &[&str]) -> Vec<String> {
    let name = |flag: &str| flag.split('=').next().unwrap_or_default().to_owned();
    let is_given = |flag: &String| {
        name(flag) != REPEATED && given.iter().any(|other| name(other) == name(flag))
    };
    let mut all: Vec<_> = usual.into_iter().filter(|flag| !is_given(flag)).collect();
    all.extend(given.iter().map(|&flag| flag.to_owned()));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_given_flag_replaces_the_default_one() {
        let usual = ["create", "--replicas=1", "--wait"].map(str::to_owned);
        let all = with(usual.to_vec(), &["--replicas=3", "--more"]);
        assert_eq!(all, ["create", "--wait", "--replicas=3", "--more"]);
        let all = with(vec!["--annotations=a=b".to_owned()], &["--annotations=c=d"]);
        assert_eq!(all, ["--annotations=a=b", "--annotations=c=d"]);
    }
}
