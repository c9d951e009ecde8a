//! `cargo xtask tidy`: house rules that no compiler knows. Pure checks over the sources; nothing is changed.

mod arrows;
mod checks;
mod graph;
mod groups;
mod modules;
mod names;
mod paths;
mod words;

use std::process::ExitCode;

use anyhow::{Result, ensure};

use crate::sources;

/// Runs all rules and prints what they find.
pub(crate) fn run() -> Result<ExitCode> {
    check()?;
    println!("tidy");
    Ok(ExitCode::SUCCESS)
}

/// Prints what the rules find, and fails if they find anything.
pub(crate) fn check() -> Result<()> {
    let findings = findings()?;
    for finding in &findings {
        println!("{finding}");
    }
    ensure!(findings.is_empty(), "{} findings", findings.len());
    Ok(())
}

/// Findings, one line each.
fn findings() -> Result<Vec<String>> {
    let files = sources::tracked()?;
    let mut findings = arrows::findings(&sources::metadata()?);
    findings.extend(graph::findings(
        &sources::graph()?,
        &sources::read("deny.toml")?,
    ));
    for package in arrows::PURE {
        findings.extend(arrows::runtimes(package, &sources::graph_of(package)?));
    }
    findings.extend(names::findings(&files));
    findings.extend(groups::findings(&files)?);
    findings.extend(checks::findings(&files)?);
    findings.extend(modules::findings(&files)?);
    findings.extend(words::findings(&files)?);
    findings.extend(paths::findings(&files)?);
    Ok(findings)
}
