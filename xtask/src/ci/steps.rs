//! The steps of `cargo xtask test`, in order.

use std::future::Future;
use std::pin::Pin;

use anyhow::Result;
use e2e::binaries::{Binaries, Binary};
use e2e::embedded;
use e2e::progress::Progress;

use super::cargo;
use super::tally::Tally;
use super::{fuzz, lanes};
use crate::{codegen, tidy};

/// A step.
#[derive(Debug)]
pub(super) struct Step {
    /// Its name on the command line.
    pub(super) name: &'static str,
    /// What it does.
    pub(super) what: &'static str,
    /// Does it.
    pub(super) run: fn() -> Running,
}

/// A step that is going on.
pub(super) type Running = Pin<Box<dyn Future<Output = Result<Tally>>>>;

/// All steps: what is quick and finds most comes first.
pub(super) const ALL: &[Step] = &[
    Step {
        name: "fmt",
        what: "the format is rustfmt's",
        run: || Box::pin(cargo::check(&["fmt", "--all", "--check"], &[])),
    },
    Step {
        name: "tidy",
        what: "the house rules that no compiler knows",
        run: || Box::pin(std::future::ready(house_rules())),
    },
    Step {
        name: "codegen",
        what: "what is generated from types is what the types say",
        run: || Box::pin(std::future::ready(generated())),
    },
    Step {
        name: "clippy",
        what: "no lint has anything to say",
        run: || {
            Box::pin(cargo::check(
                &[
                    "clippy",
                    "--workspace",
                    "--all-targets",
                    "--",
                    "-D",
                    "warnings",
                ],
                &[],
            ))
        },
    },
    Step {
        name: "doc",
        what: "the documentation builds, and its links lead somewhere",
        run: || {
            Box::pin(cargo::check(
                &["doc", "--workspace", "--no-deps"],
                &[("RUSTDOCFLAGS", "-D warnings")],
            ))
        },
    },
    Step {
        name: "programs",
        what: "the testbed's programs are built, or found in the cache",
        run: || Box::pin(programs()),
    },
    Step {
        name: "unit",
        what: "unit, property and documentation tests",
        run: || {
            Box::pin(cargo::tests(&[
                "test",
                "--workspace",
                "--exclude=e2e",
                "--no-fail-fast",
            ]))
        },
    },
    Step {
        name: "fuzz",
        what: "the fuzz targets, for a bounded time each",
        run: || Box::pin(fuzz::run()),
    },
    Step {
        name: "e2e",
        what: "tests on a real API server with stock Cluster API",
        run: || Box::pin(lanes::tests("e2e")),
    },
];

fn house_rules() -> Result<Tally> {
    let findings = tidy::findings()?;
    for finding in &findings {
        println!("{finding}");
    }
    if findings.is_empty() {
        return Ok(Tally::success());
    }
    Ok(Tally::failure())
}

fn generated() -> Result<Tally> {
    codegen::up_to_date()?;
    Ok(Tally::success())
}

async fn programs() -> Result<Tally> {
    Binaries::ensure(&Binary::ALL, &Progress::detect()).await?;
    embedded::fill().await?;
    Ok(Tally::success())
}
