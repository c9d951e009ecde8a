//! `kubectl` and `clusterctl` as clients: what they print must be the same, too.
//!
//! The commands are steps of the script: the status is the exit status, the body is the standard input.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use testbed::binaries::{Binaries, Binary};
use testbed::progress::Progress;
use testbed::wait;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};

use crate::differential::compare::clipped;
use crate::differential::leaks::LeakCheck;
use crate::differential::run::{Report, Sides};
use crate::differential::script::{self, Extent, Patience, Step};
use crate::differential::side::Side;
use crate::differential::text::normalized;

const COMMANDS: &str = include_str!("script/commands.txt");
/// How long one command may take.
const DONE_WITHIN: Duration = Duration::from_mins(1);
/// How long a command is tried that waits for what is done in the background.
const SETTLED_WITHIN: Duration = Duration::from_mins(1);

/// The programs.
#[derive(Debug)]
pub(crate) struct Programs {
    binaries: Binaries,
}

/// What a command has done.
#[derive(Debug, PartialEq, Eq)]
struct Output {
    status: u16,
    stdout: String,
    stderr: String,
}

/// The commands, in their order.
pub(crate) fn commands() -> Result<Vec<Step>> {
    script::parse("commands.txt", COMMANDS)
}

// === impl Programs ===

impl Programs {
    /// Finds or builds them.
    pub(crate) async fn ensure(progress: &Progress) -> Result<Self> {
        let binaries = Binaries::ensure(&[Binary::Kubectl, Binary::Clusterctl], progress).await?;
        Ok(Self { binaries })
    }

    /// Runs a command with both types and reports what differs.
    pub(crate) async fn run(
        &self,
        step: &Step,
        sides: &Sides,
        leaks: &LeakCheck,
        report: &mut Report,
    ) {
        let found = match self.settled(step, sides, leaks).await {
            Ok(found) => found,
            Err(error) => vec![format!("{error:#}")],
        };
        if found.is_empty() {
            report.checks.extend(step.checks.iter().cloned());
        }
        report.note(
            &format!("{}\n    {} {}", step.name(), step.method, step.path),
            &found,
        );
    }

    async fn settled(&self, step: &Step, sides: &Sides, leaks: &LeakCheck) -> Result<Vec<String>> {
        if step.patience == Patience::Once {
            return self.once(step, sides, leaks).await;
        }
        wait::until(&step.title, SETTLED_WITHIN, async || {
            let found = self.once(step, sides, leaks).await?;
            ensure!(found.is_empty(), "{}", found.join("\n    "));
            Ok(found)
        })
        .await
    }

    async fn once(&self, step: &Step, sides: &Sides, leaks: &LeakCheck) -> Result<Vec<String>> {
        let direct = self.output(step, &sides.direct);
        let (direct, proxied) = tokio::try_join!(direct, self.output(step, &sides.proxied))?;
        Ok(compare_responses(step, &direct, &proxied, leaks))
    }

    async fn output(&self, step: &Step, side: &Side) -> Result<Output> {
        let work_dir = side.testbed.path().join("client");
        std::fs::create_dir_all(&work_dir)
            .with_context(|| format!("cannot create {}", work_dir.display()))?;
        let mut child = self
            .command(step, side, &work_dir)?
            .spawn()
            .context("cannot start it")?;
        let mut stdin = child.stdin.take().context("no standard input")?;
        stdin.write_all(step.body.as_bytes()).await?;
        drop(stdin);
        let read = read(child, step.extent);
        let (status, stdout, stderr) = tokio::time::timeout(DONE_WITHIN, read)
            .await
            .with_context(|| format!("not done within {DONE_WITHIN:?}"))??;
        let clean = |text: &str| normalized(text, &side.server, &work_dir.to_string_lossy());
        Ok(Output {
            status,
            stdout: clean(&stdout),
            stderr: clean(&stderr),
        })
    }

    fn command(&self, step: &Step, side: &Side, work_dir: &Path) -> Result<Command> {
        let mut command = Command::new(self.program(&step.method)?);
        command
            .args(words(&step.path))
            .current_dir(work_dir)
            .env("HOME", work_dir)
            .env("XDG_CONFIG_HOME", work_dir)
            .env("TMPDIR", work_dir)
            .env("KUBECONFIG", &side.kubeconfig)
            .env("KUBE_EDITOR", format!("sed -i -e {}", step.editor))
            .env("KUBECTL_EXTERNAL_DIFF", "diff -u -N")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        Ok(command)
    }

    fn program(&self, name: &str) -> Result<PathBuf> {
        let binary = match name {
            "kubectl" => Binary::Kubectl,
            "clusterctl" => Binary::Clusterctl,
            _ => bail!("{name} is not among the programs"),
        };
        Ok(self.binaries.path(binary)?.to_owned())
    }
}

/// Reads what a program prints: all of it, or some lines, after which it is killed.
async fn read(mut child: Child, extent: Extent) -> Result<(u16, String, String)> {
    let stdout = child.stdout.take().context("no standard output")?;
    let mut stderr = child.stderr.take().context("no standard error")?;
    if let Extent::Events(count) = extent {
        let mut lines = BufReader::new(stdout).lines();
        let mut out = Vec::new();
        while out.len() < count {
            out.push(lines.next_line().await?.context("it ended too early")?);
        }
        child.kill().await?;
        return Ok((0, out.join("\n"), String::new()));
    }
    ensure!(extent == Extent::Whole, "a program has no initial events");
    let (mut out, mut errors, mut reader) = (String::new(), String::new(), stdout);
    tokio::try_join!(
        reader.read_to_string(&mut out),
        stderr.read_to_string(&mut errors)
    )?;
    let status = child.wait().await?.code().context("it was killed")?;
    Ok((u16::try_from(status).unwrap_or(u16::MAX), out, errors))
}

fn compare_responses(
    step: &Step,
    direct: &Output,
    proxied: &Output,
    leaks: &LeakCheck,
) -> Vec<String> {
    let mut found = Vec::new();
    if direct.status != step.status {
        found.push(format!(
            "the script expects exit status {}, it was {}",
            step.status, direct.status
        ));
    }
    if direct != proxied {
        found.push(format!(
            "exit status {} and {}",
            direct.status, proxied.status
        ));
        lines("stdout", &direct.stdout, &proxied.stdout, &mut found);
        lines("stderr", &direct.stderr, &proxied.stderr, &mut found);
    }
    let printed = [&proxied.stdout, &proxied.stderr];
    found.extend(
        printed
            .iter()
            .filter_map(|text| Some(format!("leak: {}", leaks.find(text)?))),
    );
    if !found.is_empty() {
        found.push(format!(
            "direct: {} {}",
            clipped(&direct.stdout),
            clipped(&direct.stderr)
        ));
        found.push(format!(
            "proxied: {} {}",
            clipped(&proxied.stdout),
            clipped(&proxied.stderr)
        ));
    }
    found
}

/// The first line that differs.
fn lines(name: &str, direct: &str, proxied: &str, found: &mut Vec<String>) {
    if direct == proxied {
        return;
    }
    let (mut one, mut two) = (direct.lines(), proxied.lines());
    for number in 1.. {
        let (one, two) = (one.next(), two.next());
        if one != two {
            found.push(format!(
                "{name}, line {number}:\n      direct  {one:?}\n      proxied {two:?}"
            ));
            return;
        }
    }
}

/// The arguments of a command line; single quotes keep spaces.
fn words(line: &str) -> Vec<String> {
    let quoted = line.split('\'').enumerate();
    let mut words: Vec<String> = vec![String::new()];
    for (index, part) in quoted {
        if index % 2 == 1 {
            words
                .last_mut()
                .expect("invariant: never empty")
                .push_str(part);
            continue;
        }
        for (index, word) in part.split(' ').enumerate() {
            if index > 0 {
                words.push(String::new());
            }
            words
                .last_mut()
                .expect("invariant: never empty")
                .push_str(word);
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_keep_spaces() {
        assert_eq!(
            words("get  -o 'a b' x='c d'e"),
            ["get", "-o", "a b", "x=c de"]
        );
    }

    #[test]
    fn finds_the_first_line_that_differs() {
        let mut found = Vec::new();
        lines("stdout", "a\nb", "a\nb", &mut found);
        assert!(found.is_empty());
        lines("stdout", "a\nb", "a\nc\nd", &mut found);
        lines("stderr", "a", "a\nb", &mut found);
        assert!(found[0].starts_with("stdout, line 2"), "{found:?}");
        assert!(found[1].starts_with("stderr, line 2"), "{found:?}");
    }
}
