//! Running tests: several at once, each shown in one piece when it has ended.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::schedule::{Job, Next, Schedule};
use super::summary::{Part, seconds};
use super::tally::Tally;
use crate::cargo::Executable;

/// The variable by which the testbed finds programs that are built already.
const PROGRAMS: &str = "HYPERSHIFT_TESTBED_PROGRAMS";

/// A test program, or one test of it.
#[derive(Debug, Clone)]
pub(super) struct Test {
    /// For the output, and for the record of times.
    pub(super) name: String,
    pub(super) program: Executable,
    /// The one test of the program that is run; all of them if there is none.
    pub(super) only: Option<String>,
}

/// The result of a run.
#[derive(Debug, Default)]
pub(super) struct Results {
    pub(super) tally: Tally,
    pub(super) parts: Vec<Part>,
}

/// The schedule, and what is known so far.
struct Shared {
    schedule: Mutex<(Schedule<Test>, Results)>,
    ended: Condvar,
    programs: PathBuf,
}

/// Runs everything, as many at once as there are units.
pub(super) fn run(jobs: Vec<Job<Test>>, units: u32, programs: &Path) -> Results {
    let shared = Shared {
        schedule: Mutex::new((Schedule::new(jobs, units), Results::default())),
        ended: Condvar::new(),
        programs: programs.to_owned(),
    };
    std::thread::scope(|scope| {
        for _ in 0..units {
            scope.spawn(|| work(&shared));
        }
    });
    let (_, results) = shared
        .schedule
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    results
}

fn work(shared: &Shared) {
    let mut state = shared.lock();
    loop {
        match state.0.take() {
            Next::Done => return,
            Next::Wait => {
                state = shared
                    .ended
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            Next::Run(job) => {
                drop(state);
                let (tally, part) = run_one(&job.what, &shared.programs);
                state = shared.lock();
                state.0.release(job.cost);
                state.1.tally = state.1.tally + tally;
                state.1.parts.push(part);
                shared.ended.notify_all();
            }
        }
    }
}

// === impl Shared ===

impl Shared {
    fn lock(&self) -> MutexGuard<'_, (Schedule<Test>, Results)> {
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn run_one(test: &Test, programs: &Path) -> (Tally, Part) {
    println!("--- {}: started", test.name);
    let start = Instant::now();
    let result = output(test, programs);
    let part = Part {
        name: test.name.clone(),
        took: start.elapsed(),
    };
    let took = seconds(part.took);
    let tally = match &result {
        Ok(output) => tally(output),
        Err(_) => Tally::failure(),
    };
    if tally.failed == 0 {
        println!("--- {}: {tally} ({took})", test.name);
    } else {
        println!("--- {}: FAILED ({took})\n{}", test.name, shown(&result));
    }
    (tally, part)
}

fn output(test: &Test, programs: &Path) -> Result<Output> {
    let mut command = command(&test.program);
    command.env(PROGRAMS, programs);
    if let Some(name) = &test.only {
        command.args(["--exact", name]);
    }
    command
        .output()
        .with_context(|| format!("failed to run {}", test.program.path.display()))
}

/// The program as cargo would run it.
fn command(program: &Executable) -> Command {
    let mut command = Command::new(&program.path);
    command
        .current_dir(&program.directory)
        .env("CARGO_MANIFEST_DIR", &program.directory)
        .stdin(Stdio::null());
    command
}

/// A program that died without counting its tests is one failure.
fn tally(output: &Output) -> Tally {
    let counted = Tally::of_output(&String::from_utf8_lossy(&output.stdout));
    if output.status.success() || counted.failed > 0 {
        return counted;
    }
    counted + Tally::failure()
}

fn shown(result: &Result<Output>) -> String {
    match result {
        Ok(output) => format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        ),
        Err(error) => format!("{error:#}"),
    }
}

/// The names of a program's tests that are not ignored.
pub(super) fn names(program: &Executable) -> Result<Vec<String>> {
    let all = listed(program, &["--list", "--format", "terse"])?;
    let ignored = listed(program, &["--list", "--format", "terse", "--ignored"])?;
    Ok(all
        .into_iter()
        .filter(|name| !ignored.contains(name))
        .collect())
}

fn listed(program: &Executable, arguments: &[&str]) -> Result<Vec<String>> {
    let output = command(program)
        .args(arguments)
        .output()
        .with_context(|| format!("failed to run {}", program.path.display()))?;
    ensure!(
        output.status.success(),
        "failed to list the tests of {}: {}",
        program.name,
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8_lossy(&output.stdout);
    let names = text.lines().filter_map(|line| line.strip_suffix(": test"));
    Ok(names.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::super::schedule::Cost;
    use super::*;

    fn job(name: &str, script: &str) -> Job<Test> {
        // A shell replaces a test program: its "test" is its script.
        Job {
            what: Test {
                name: name.to_owned(),
                program: Executable {
                    directory: PathBuf::from("/"),
                    package: "p".to_owned(),
                    name: name.to_owned(),
                    kind: "test".to_owned(),
                    is_test: true,
                    path: PathBuf::from(script),
                },
                only: None,
            },
            cost: Cost {
                units: 1,
                provider: false,
            },
            estimate: 1,
        }
    }

    #[test]
    fn a_program_that_ends_badly_or_is_missing_is_a_failure() {
        let jobs = vec![
            job("good", "/bin/true"),
            job("bad", "/bin/false"),
            job("missing", "/nothing/here"),
        ];
        let results = run(jobs, 2, Path::new("/"));
        assert_eq!(results.tally.failed, 2);
        assert_eq!(results.parts.len(), 3);
    }

    #[test]
    fn ignored_tests_are_not_listed() {
        let program = Executable {
            path: std::env::current_exe().unwrap(),
            ..job("xtask", "").what.program
        };
        let names = names(&program).unwrap();
        let own = "ci::runner::tests::ignored_tests_are_not_listed";
        assert!(names.iter().any(|name| name == own), "{names:?}");
    }
}
