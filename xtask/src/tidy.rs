//! `cargo xtask tidy`: house rules that no compiler knows. Pure checks over the sources; nothing is changed.

mod arrows;
mod checks;
mod graph;
mod groups;
mod names;
mod sources;

use std::process::ExitCode;

use anyhow::Result;

pub(crate) use sources::root;

/// Runs all rules and prints what they find.
pub(crate) fn run() -> Result<ExitCode> {
    let findings = findings()?;
    for finding in &findings {
        println!("{finding}");
    }
    if findings.is_empty() {
        println!("tidy");
        return Ok(ExitCode::SUCCESS);
    }
    Ok(ExitCode::FAILURE)
}

/// What is wrong, one line each.
pub(crate) fn findings() -> Result<Vec<String>> {
    let files = sources::tracked()?;
    let mut findings = arrows::findings(&sources::metadata()?);
    findings.extend(graph::findings(
        &sources::graph()?,
        &sources::read("deny.toml")?,
    ));
    findings.extend(names::findings(&files));
    findings.extend(groups::findings(&files)?);
    findings.extend(checks::findings(&files)?);
    Ok(findings)
}
