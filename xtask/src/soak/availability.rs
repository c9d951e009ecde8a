//! `cargo xtask soak availability`: what a hosted control plane bears.

use std::process::ExitCode;

use anyhow::Result;

/// The variable by which failures are chosen; the test refuses names that it does not know.
const FAILURES: &str = "HYPERSHIFT_FAILURES";
/// The variable by which figures of failures are written.
const WRITE: &str = "UPDATE_GOLDEN";
/// The test, and the program that it is in.
pub(super) const REPLAYED: [&str; 2] = [
    "highly_available",
    "highly_available_control_plane_tolerates_failures",
];

/// Flags of `soak availability`.
#[derive(Debug, clap::Args)]
pub(crate) struct Availability {
    /// Replay this one only; may be given several times (docs/failures.md lists them)
    #[arg(long = "only", value_name = "FAILURE")]
    only: Vec<String>,
    /// Write what the client saw into docs/failures.md, in place of comparing the two
    #[arg(long)]
    write: bool,
}

/// Runs it.
pub(crate) fn run(flags: &Availability) -> Result<ExitCode> {
    let [program, test] = REPLAYED;
    super::test(program, test, &flags.variables())
}

// === impl Availability ===

impl Availability {
    fn variables(&self) -> Vec<(&'static str, String)> {
        let mut variables = vec![(FAILURES, self.only.join(","))];
        if self.write {
            variables.push((WRITE, "1".to_owned()));
        }
        variables
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selected_failures_are_passed_on() {
        let flags = |only: &[&str], write| Availability {
            only: only.iter().map(|&one| one.to_owned()).collect(),
            write,
        };
        let all = flags(&[], false).variables();
        assert_eq!(all, [(FAILURES, String::new())]);
        let some = flags(&["nodes", "single"], true).variables();
        let expected = [
            (FAILURES, "nodes,single".to_owned()),
            (WRITE, "1".to_owned()),
        ];
        assert_eq!(some, expected);
    }
}
