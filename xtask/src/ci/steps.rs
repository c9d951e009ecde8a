//! The steps of `cargo xtask test`, in order.

use std::thread::available_parallelism;

use anyhow::{Result, ensure};

use super::runner::{self, Results, Test};
use super::schedule::{Cost, Job};
use super::tally::Tally;
use super::times::Times;
use super::{Gate, fuzz, weights};
use crate::advisories::{self, Outcome};
use crate::cargo::{self, Executable, TARGET};
use crate::tidy;

/// The package with tests that need a cluster.
const END_TO_END: &str = "e2e";
/// Memory that one unit of the end-to-end tests may take, in bytes.
const UNIT_MEMORY: u64 = 2_000_000_000;

/// A step.
#[derive(Debug)]
pub(super) struct Step {
    /// Its name on the command line.
    pub(super) name: &'static str,
    /// What it does.
    pub(super) what: &'static str,
    /// Does it.
    pub(super) run: fn(&mut Gate) -> Result<Tally>,
}

/// All steps: fast steps that find most are first.
pub(super) const ALL: &[Step] = &[
    Step {
        name: "fmt",
        what: "check the format with rustfmt",
        run: |_| check(&["fmt", "--all", "--check"], &[]),
    },
    Step {
        name: "tidy",
        what: "check the house rules that no compiler knows",
        run: |_| tidy::check().map(passed),
    },
    Step {
        name: "advisories",
        what: "compare Cargo.lock with the known vulnerabilities of crates",
        run: |_| known_vulnerabilities(),
    },
    Step {
        name: "build",
        what: "build every test and program of the workspace, once",
        run: |gate| gate.built.tests().map(|_| Tally::success()),
    },
    Step {
        name: "clippy",
        what: "run all lints, warnings denied",
        run: clippy,
    },
    Step {
        name: "doc",
        what: "build the documentation, broken links denied",
        run: |_| {
            check(
                &["doc", "--workspace", "--no-deps", "--target", TARGET],
                &[("RUSTDOCFLAGS", "-D warnings")],
            )
        },
    },
    Step {
        name: "unit",
        what: "run unit, property and documentation tests",
        run: unit,
    },
    Step {
        name: "fuzz",
        what: "run the fuzz targets, for a bounded time each",
        run: |_| fuzz::run(),
    },
    Step {
        name: "programs",
        what: "wait for the testbed's programs, built from Go modules since step build",
        run: |gate| gate.built.wait_for_go().map(passed),
    },
    Step {
        name: "e2e",
        what: "run the tests on a real API server with stock Cluster API",
        run: end_to_end,
    },
];

/// The sidecar uses `support` without a client; everything else that is built here has one.
const CLIPPY_WITHOUT_CLIENT: &[&str] = &[
    "clippy",
    "--package=support",
    "--no-default-features",
    "--all-targets",
    "--target",
    TARGET,
    "--",
    "-D",
    "warnings",
];

/// The lints have run while everything was built; here they are counted.
fn clippy(gate: &mut Gate) -> Result<Tally> {
    ensure!(
        cargo::compiler_with_lints().is_some(),
        "no lint was run: rustup component add clippy"
    );
    let warnings = gate.built.warnings()?;
    let own = if warnings == 0 {
        Tally::success()
    } else {
        println!("{warnings} warnings, which step build has shown");
        Tally::failure()
    };
    Ok(own + check(CLIPPY_WITHOUT_CLIENT, &[])?)
}

fn check(arguments: &[&str], environment: &[(&str, &str)]) -> Result<Tally> {
    cargo::run(arguments, environment).map(passed)
}

fn passed((): ()) -> Tally {
    Tally::success()
}

/// Without a database nothing was checked: that is neither a success nor a failure, and is said at the end again.
fn known_vulnerabilities() -> Result<Tally> {
    match advisories::check()? {
        Outcome::Clean(crates) => {
            println!("{crates} crates without an advisory");
            Ok(Tally::success())
        }
        Outcome::Found(lines) => {
            println!("{}", lines.join("\n"));
            Ok(Tally::failure())
        }
        Outcome::NotChecked(cause) => {
            println!("advisories NOT CHECKED: {cause}");
            println!(
                "to check with an offline copy of the database: RUSTSEC_DB=DIRECTORY cargo xtask test --only advisories"
            );
            Ok(Tally::skipped())
        }
    }
}

/// Runs the test programs that need no cluster, then the examples of the documentation.
fn unit(gate: &mut Gate) -> Result<Tally> {
    let tests = gate.built.tests()?;
    let jobs = tests
        .into_iter()
        .filter(|program| program.package != END_TO_END && program.name.contains(&gate.filter))
        .map(whole);
    let processors = available_parallelism().map_or(2, usize::from);
    let programs = gate.built.programs()?;
    let units = u32::try_from(processors).unwrap_or(2);
    let results = runner::run(jobs.collect(), units, &programs);
    let tally = gate.record(results);
    Ok(tally + documentation()?)
}

/// Documentation tests are compiled one by one; only rustdoc can run them.
fn documentation() -> Result<Tally> {
    check(&["test", "--workspace", "--doc", "--target", TARGET], &[])
}

/// A whole test program. Those that have many cases are the longest.
fn whole(program: Executable) -> Job<Test> {
    let size = std::fs::metadata(&program.path).map_or(0, |file| file.len());
    Job {
        cost: Cost {
            units: 1,
            provider: false,
        },
        estimate: size,
        what: Test {
            name: format!("{} ({} {})", program.package, program.kind, program.name),
            program,
            only: None,
        },
    }
}

/// Runs the tests that need a cluster: each in a process of its own, the longest first.
fn end_to_end(gate: &mut Gate) -> Result<Tally> {
    gate.built.wait_for_go()?;
    let mut times = Times::load();
    let mut jobs = Vec::new();
    for program in gate.built.tests()? {
        if program.package == END_TO_END {
            for name in runner::names(&program)? {
                jobs.push(single(&program, &name, &times));
            }
        }
    }
    jobs.retain(|job| job.what.name.contains(&gate.filter));
    let programs = gate.built.programs()?;
    let units = gate.units.unwrap_or_else(units);
    println!("{} tests, {units} units at once", jobs.len());
    let results = runner::run(jobs, units, &programs);
    for part in &results.parts {
        times.record(part);
    }
    times.store();
    Ok(gate.record(results))
}

fn single(program: &Executable, name: &str, times: &Times) -> Job<Test> {
    Job {
        cost: weights::cost(name),
        estimate: times
            .of(name)
            .unwrap_or_else(|| weights::first_estimate(name)),
        what: Test {
            name: name.to_owned(),
            program: program.clone(),
            only: Some(name.to_owned()),
        },
    }
}

/// Tests wait more than they compute, but control planes with all components compute a lot while they start: one unit more
/// than there are processors, as far as the memory allows.
fn units() -> u32 {
    let processors = available_parallelism().map_or(2, usize::from);
    let by_processors = u32::try_from(processors + 1).unwrap_or(3);
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let by_memory = available(&memory).map_or(2, |bytes| bytes / UNIT_MEMORY);
    by_processors
        .min(u32::try_from(by_memory).unwrap_or(u32::MAX))
        .max(2)
}

/// The memory that can be had, in bytes.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find(|line| line.starts_with("MemAvailable:"))?;
    let kibibytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kibibytes * 1024)
}

// === impl Gate ===

impl Gate {
    fn record(&mut self, results: Results) -> Tally {
        let Results { tally, parts } = results;
        self.parts.extend(parts);
        tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_memory_is_read() {
        let text = "MemTotal:       24000000 kB\nMemAvailable:   20000000 kB\n";
        assert_eq!(available(text), Some(20_480_000_000));
        assert_eq!(available("MemTotal: 1 kB"), None);
    }

    #[test]
    fn steps_have_different_names() {
        let names: std::collections::BTreeSet<_> = ALL.iter().map(|step| step.name).collect();
        assert_eq!(names.len(), ALL.len());
    }
}
