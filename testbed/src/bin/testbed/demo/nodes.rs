//! The demo on a management cluster with nodes: the product is installed by its own command, and everything is a pod.
//!
//! It is a list of [`Act`]s: another one is a variant, its title, and what it does on the [`Stage`].

mod acts;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use futures::future::{Either, select};
use testbed::binaries::{Binaries, Binary};
use testbed::hosted::{self, Fixture};
use testbed::images::{Image, StaticProgram, build_static};
use testbed::platform::Platform;
use testbed::progress::Progress;
use testbed::view::View;
use testbed::wait::seconds;
use testbed::{cargo, embedded};
use tokio::process::Command;

use super::{NAME, until_interrupted};
use crate::manage::nodes;
use crate::show;
use acts::Act;

/// What is installed, and therefore built.
const IMAGES: [Image; 2] = [Image::HypershiftOperator, Image::CapiProxy];
/// Width of a heading.
const LINE: usize = 100;

/// Where the acts are played.
#[derive(Debug)]
struct Stage {
    // Dropped before what it depends on.
    view: Option<View>,
    platform: Option<Platform>,
    fixture: Fixture,
    /// For a view at a terminal.
    proxy: PathBuf,
}

/// Starts everything, plays all acts, and ends it.
pub(super) async fn show(progress: &Progress, stays: bool) -> Result<()> {
    println!("{}", playbill()?);
    // The cluster starts while the rest is built: each of the two waits for what it needs of the other.
    let cluster = Box::pin(nodes::bring_up(NAME, 1, &IMAGES, progress));
    let ((programs, proxy), (testbed, state)) = tokio::try_join!(build(progress), cluster)?;
    let fixture = Box::pin(Fixture::equip(testbed, programs)).await?;
    let mut set = Stage {
        view: None,
        platform: None,
        fixture,
        proxy,
    };
    // A later act needs this program; if the build fails, the act tries again and prints the cause.
    let later = Box::pin(Binaries::ensure(&[Binary::PlatformCore], progress));
    let outcome = match select(Box::pin(play(&mut set, progress)), later).await {
        Either::Left((outcome, _)) => outcome,
        Either::Right((_, acts)) => acts.await,
    };
    if outcome.is_ok() {
        println!("{}", show::instructions(&state));
        println!("{}", set.more());
        until_interrupted(stays).await;
    }
    let Stage { view, fixture, .. } = set;
    drop(view);
    fixture.finish(outcome)
}

/// What there will be.
fn playbill() -> Result<String> {
    let acts: Vec<_> = Act::ALL
        .iter()
        .enumerate()
        .map(|(number, act)| Ok(format!("  {}  {}", number + 1, act.title()?)))
        .collect::<Result<_>>()?;
    Ok(format!(
        "\nA management cluster on this machine, in namespaces of its own, with images of this tree:\n\n{}\n",
        acts.join("\n")
    ))
}

async fn play(stage: &mut Stage, progress: &Progress) -> Result<()> {
    for (number, act) in Act::ALL.iter().enumerate() {
        println!("{}", heading(number + 1, &act.title()?));
        act.play(stage).await?;
    }
    println!("\nall of it took {}", seconds(progress.elapsed()));
    Ok(())
}

fn heading(number: usize, title: &str) -> String {
    let text = format!("── {number} of {}  {title} ", Act::ALL.len());
    let rest = LINE.saturating_sub(text.chars().count());
    let line = text + &"─".repeat(rest);
    if std::io::stdout().is_terminal() {
        return format!("\n\u{1b}[1m{line}\u{1b}[0m");
    }
    format!("\n{line}")
}

/// Builds the command line programs, and the proxy.
async fn build(progress: &Progress) -> Result<(hosted::Programs, PathBuf)> {
    // The command line embeds the private CRDs.
    embedded::fill().await?;
    cargo::prepare(progress).await?;
    let programs = hosted::Programs::build(progress).await?;
    let (package, name) = ("capi-proxy", "capi-proxy");
    let proxy = build_static(&StaticProgram { package, name }, progress).await?;
    Ok((programs, proxy))
}

// === impl Stage ===

impl Stage {
    /// Types a command, as a reader would who is where the testbed's files are, and shows what it says.
    async fn types(&self, words: &[impl AsRef<str>]) -> Result<()> {
        let here = self.fixture.testbed.path();
        let prefix = format!("{}/", here.display());
        let words: Vec<String> = words
            .iter()
            .map(|word| word.as_ref().replace(&prefix, ""))
            .collect();
        println!("\n$ {}", typed(&words));
        let [program, args @ ..] = words.as_slice() else {
            return Ok(());
        };
        let status = Command::new(program)
            .args(args)
            .current_dir(here)
            .env("PATH", self.path()?)
            .env("KUBECONFIG", self.fixture.testbed.kubeconfig())
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .status()
            .await
            .with_context(|| format!("cannot run {program}"))?;
        ensure!(status.success(), "{program} failed ({status})");
        Ok(())
    }

    /// The programs of this tree and the kubectl that fits come first.
    fn path(&self) -> Result<OsString> {
        let hosted::Programs { hypershift, hcp } = &self.fixture.programs;
        let own = [hypershift, hcp, self.fixture.testbed.kubectl()]
            .map(|program| program.parent().unwrap_or(Path::new("/")).to_owned());
        let path = std::env::var_os("PATH").unwrap_or_default();
        let all = own.into_iter().chain(std::env::split_paths(&path));
        std::env::join_paths(all).context("PATH cannot be set")
    }

    /// What can be tried beside what every testbed offers.
    fn more(&self) -> String {
        let view = self.view.as_ref().map(View::kubeconfig);
        let view = view.unwrap_or(Path::new("")).display();
        let cluster = acts::hosted(self);
        let hosted::Programs { hypershift, hcp } = &self.fixture.programs;
        format!(
            "  alias hypershift={hypershift}
  alias hcp={hcp}
  VIEW={view}    # through a proxy, as Cluster API's clients see it
  HOSTED={kubeconfig}    # the hosted cluster

  hypershift doctor
  hcp scale nodepool --name {pool} --replicas 2
  kubectl -n {namespace} get pods,machines.{private}
  kubectl --kubeconfig $VIEW -n {namespace} get machines.{standard}
  kubectl --kubeconfig $HOSTED get nodes
",
            hypershift = hypershift.display(),
            hcp = hcp.display(),
            kubeconfig = cluster.kubeconfig().display(),
            pool = cluster.pool(),
            namespace = cluster.namespace(),
            private = show::core_group(api::group::CapiTypes::Private),
            standard = show::core_group(api::group::CapiTypes::Standard),
        )
    }
}

/// A command for display: one that is too long for a line has a line for each flag.
fn typed(words: &[String]) -> String {
    let text = words.join(" ");
    if text.chars().count() <= LINE {
        return text;
    }
    text.replace(" --", " \\\n    --")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_playbill_names_every_act_and_the_platforms_version() {
        let text = playbill().unwrap();
        for (number, act) in Act::ALL.iter().enumerate() {
            let line = format!("  {}  {}", number + 1, act.title().unwrap());
            assert!(text.contains(&line), "{text}");
        }
        assert!(
            text.contains(&testbed::platform::version().unwrap()),
            "{text}"
        );
    }
    #[test]
    fn a_long_command_has_a_line_for_each_flag() {
        let words = |flag: &str| ["hcp", "create", "--a=1", flag].map(str::to_owned);
        assert_eq!(typed(&words("--b=2")), "hcp create --a=1 --b=2");
        let long = format!("--b={}", "2".repeat(LINE));
        let expected = format!("hcp create \\\n    --a=1 \\\n    {long}");
        assert_eq!(typed(&words(&long)), expected);
    }
}
