//! `cargo xtask release cli`: the program `hcp` for each platform, as HyperShift distributes it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::{Arg, ArgAction};

use super::archive::{self, File};
use super::build::Builds;
use super::plan::{Machine, Missing, Step};
use super::targets::{TARGETS, Target};
use crate::programs::announce;
use crate::sources::root;

/// The file with checksums.
const SUMS: &str = "SHA256SUMS";

/// What is built.
#[derive(Debug, clap::Args)]
#[command(arg(help()))]
pub(super) struct Args {
    /// Build only for this target; may be given several times [default: all that this machine can build]
    #[arg(long = "target", value_name = "TRIPLE", value_parser = Target::parse)]
    targets: Vec<Target>,
    /// The directory that is written
    #[arg(long, value_name = "DIRECTORY", default_value = "dist/cli")]
    output: PathBuf,
    /// The cargo profile: `dev` is quicker, to try the command
    #[arg(long, default_value = "release")]
    profile: String,
    /// The commit that the program reports [default: the checkout's]
    #[arg(long, value_name = "HASH", env = "HYPERSHIFT_COMMIT")]
    commit: Option<String>,
    /// Print what would be built and what is missing, and build nothing
    #[arg(long)]
    dry_run: bool,
}

/// Builds of the targets, and what is missing for the others.
#[derive(Debug, Default)]
struct Plan {
    steps: Vec<Step>,
    missing: Vec<(Target, Vec<Missing>)>,
}

/// Checks the toolchains, builds, and writes archives and checksums.
pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let targets = match &args.targets[..] {
        [] => &TARGETS[..],
        targets => targets,
    };
    let plan = Plan::new(targets, &Machine::detect(&root())?);
    for line in plan.lines() {
        println!("{line}");
    }
    if args.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    plan.ensure_complete(!args.targets.is_empty())?;
    let builds = Builds::new(&root(), &args.profile, args.commit.as_deref())?;
    let license = fs::read(root().join("LICENSE")).context("failed to read LICENSE")?;
    fs::create_dir_all(&args.output)
        .with_context(|| format!("failed to create {}", args.output.display()))?;
    for step in &plan.steps {
        announce(&format!("building hcp for {}", step.target.triple));
        let program = builds.build(step)?;
        release(step.target, &program, &license, &args.output)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the archive of a target and its line of the checksums.
fn release(target: Target, program: &Path, license: &[u8], output: &Path) -> Result<()> {
    let bytes =
        fs::read(program).with_context(|| format!("failed to read {}", program.display()))?;
    let archive = archive::pack(&[
        File {
            name: target.program(),
            mode: 0o755,
            bytes: &bytes,
        },
        File {
            name: "LICENSE",
            mode: 0o644,
            bytes: license,
        },
    ])?;
    write(&output.join(target.archive()), &archive)?;
    let sums = output.join(SUMS);
    let earlier = if sums.exists() {
        fs::read_to_string(&sums).with_context(|| format!("failed to read {}", sums.display()))?
    } else {
        String::new()
    };
    let written = BTreeMap::from([(target.archive(), archive)]);
    write(&sums, archive::checksums(&earlier, &written).as_bytes())
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).with_context(|| format!("failed to write {}", path.display()))
}

/// The flag that the parent command disables, because it forwards its own.
fn help() -> Arg {
    let help = Arg::new("help").long("help").short('h');
    help.action(ArgAction::Help).help("Print help")
}

// === impl Plan ===

impl Plan {
    fn new(targets: &[Target], machine: &Machine) -> Self {
        let mut plan = Self::default();
        for target in targets {
            match machine.plan(*target) {
                Ok(step) => plan.steps.push(step),
                Err(missing) => plan.missing.push((*target, missing)),
            }
        }
        plan
    }

    /// The plan as text.
    fn lines(&self) -> Vec<String> {
        let steps = self.steps.iter().map(Step::to_string);
        let missing = self.missing.iter().map(|(target, missing)| {
            let missing: Vec<_> = missing.iter().map(Missing::to_string).collect();
            let archive = target.archive();
            format!(
                "{archive}: missing for {}: {}",
                target.triple,
                missing.join(", ")
            )
        });
        steps.chain(missing).collect()
    }

    /// Fails if nothing can be built, or if a target that was asked for cannot.
    fn ensure_complete(&self, is_explicit: bool) -> Result<()> {
        let is_complete = self.missing.is_empty() || !is_explicit;
        ensure!(
            is_complete && !self.steps.is_empty(),
            "nothing was built, because {} of {} targets cannot be built on this machine",
            self.missing.len(),
            self.missing.len() + self.steps.len()
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_has_a_line_for_each_target() {
        let plan = Plan::new(&TARGETS, &Machine::default());
        let lines = plan.lines();
        assert_eq!(lines.len(), TARGETS.len());
        for (line, target) in lines.iter().zip(TARGETS) {
            let start = format!("{}: missing for {}: ", target.archive(), target.triple);
            assert!(line.starts_with(&start), "{line}");
        }
        plan.ensure_complete(false).unwrap_err();
    }

    #[test]
    fn only_targets_that_are_asked_for_must_be_buildable() {
        let [ready, other, ..] = TARGETS;
        let plan = Plan {
            steps: vec![Step {
                target: ready,
                compiler: None,
                check: super::super::plan::Check::Skip,
            }],
            missing: vec![(other, vec![Missing::StandardLibrary(other.triple)])],
        };
        plan.ensure_complete(false).unwrap();
        let error = plan.ensure_complete(true).unwrap_err().to_string();
        assert!(error.contains("1 of 2 targets"), "{error}");
    }
}
