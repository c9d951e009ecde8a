//! Test programs in two lanes, side by side: they mostly wait for a cluster, and seldom for the processor.

use std::collections::VecDeque;
use std::process::{Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use e2e::wait::seconds;
use serde_json::Value;

use super::cargo;
use super::tally::Tally;

/// Those that start first, since all else fits beside them: the longest.
const LONGEST: [&str; 5] = [
    "hosted_cluster",
    "cluster_api",
    "hosted_clusters_api",
    "migration_managers",
    "migration",
];

/// Builds a package's test programs, then runs them in lanes; what one prints is shown in one piece when it has ended.
pub(super) async fn tests(package: &str) -> Result<Tally> {
    cargo::check(&["test", "--package", package, "--no-run"], &[]).await?;
    let queue = Mutex::new(in_order(programs(package).await?));
    let (one, other) = tokio::try_join!(lane(package, &queue), lane(package, &queue))?;
    Ok(one + other)
}

/// The longest first, in the order of [`LONGEST`]; the others as they come.
fn in_order(programs: Vec<String>) -> VecDeque<String> {
    let rank = |name: &String| LONGEST.iter().position(|long| long == name);
    let mut programs = programs;
    programs.sort_by_key(|name| rank(name).unwrap_or(LONGEST.len()));
    programs.into()
}

async fn lane(package: &str, queue: &Mutex<VecDeque<String>>) -> Result<Tally> {
    let mut total = Tally::default();
    loop {
        let next = queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front();
        let Some(program) = next else {
            return Ok(total);
        };
        total = total + run(package, &program).await?;
    }
}

async fn run(package: &str, program: &str) -> Result<Tally> {
    println!("--- {program}: started");
    let start = Instant::now();
    let mut args = vec!["test", "--package", package];
    match program {
        LIBRARY => args.push("--lib"),
        test => args.extend(["--test", test]),
    }
    let output = cargo::cargo(&args, &[])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()
        .await
        .with_context(|| format!("cannot run the tests {program}"))?;
    let tally = judge(&output);
    println!(
        "--- {program}: {tally} ({})\n{}{}",
        seconds(start.elapsed()),
        String::from_utf8_lossy(&output.stdout),
        said_besides(&output, tally)
    );
    Ok(tally)
}

/// What cargo and the program said on standard error, when something went wrong.
fn said_besides(output: &Output, tally: Tally) -> String {
    if tally.failed == 0 {
        return String::new();
    }
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A program that died without counting its tests is one failure.
fn judge(output: &Output) -> Tally {
    let counted = String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(Tally::of_line)
        .fold(Tally::default(), |total, more| total + more);
    if output.status.success() || counted.failed > 0 {
        return counted;
    }
    counted + Tally::failure()
}

/// The name that the library's own tests have here.
const LIBRARY: &str = "(library)";

async fn programs(package: &str) -> Result<Vec<String>> {
    let output = cargo::cargo(&["metadata", "--no-deps", "--format-version=1"], &[])
        .stdout(Stdio::piped())
        .output()
        .await
        .context("cannot run cargo metadata")?;
    ensure!(output.status.success(), "cargo metadata failed");
    let metadata = serde_json::from_slice(&output.stdout).context("cannot read cargo metadata")?;
    Ok(targets(&metadata, package))
}

/// The programs of a package whose tests cargo runs.
fn targets(metadata: &Value, package: &str) -> Vec<String> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    packages
        .filter(|found| found["name"] == package)
        .flat_map(|found| found["targets"].as_array().into_iter().flatten())
        .filter(|target| target["test"] == true)
        .filter_map(|target| match target["kind"][0].as_str()? {
            "test" => target["name"].as_str().map(str::to_owned),
            "lib" => Some(LIBRARY.to_owned()),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_longest_come_first_and_none_is_forgotten() {
        let names = ["crds", "cluster_api", "(library)", "hosted_cluster"].map(str::to_owned);
        let queue: Vec<_> = in_order(names.to_vec()).into();
        assert_eq!(
            queue,
            ["hosted_cluster", "cluster_api", "crds", "(library)"]
        );
    }

    #[test]
    fn tests_and_the_library_of_the_package_are_programs() {
        let metadata = json!({"packages": [
            {"name": "e2e", "targets": [
                {"name": "e2e", "kind": ["lib"], "test": true},
                {"name": "node", "kind": ["test"], "test": true},
                {"name": "tool", "kind": ["bin"], "test": true},
                {"name": "off", "kind": ["test"], "test": false},
            ]},
            {"name": "api", "targets": [{"name": "others", "kind": ["test"], "test": true}]},
        ]});
        assert_eq!(targets(&metadata, "e2e"), [LIBRARY, "node"]);
    }
}
