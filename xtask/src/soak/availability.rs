//! `cargo xtask soak availability`: what a hosted control plane bears.

use std::process::ExitCode;

use anyhow::Result;
use clap::builder::{PossibleValue, PossibleValuesParser};
use e2e::failures::{self, Failure};

/// The variable by which figures of failures are written.
const WRITE: &str = "UPDATE_GOLDEN";
/// The test, and the program that it is in.
pub(super) const REPLAYED: [&str; 2] = [
    "highly_available",
    "o08_a_control_plane_bears_what_it_has_replicas_for",
];

/// Flags of `soak availability`.
#[derive(Debug, clap::Args)]
pub(crate) struct Availability {
    /// Replay this one only; may be given several times
    #[arg(long = "only", value_name = "FAILURE", value_parser = names())]
    only: Vec<String>,
    /// Write what the client saw into docs/failures.md, in place of comparing the two
    #[arg(long)]
    write: bool,
}

/// Runs it.
pub(crate) async fn run(flags: &Availability) -> Result<ExitCode> {
    let [program, test] = REPLAYED;
    super::test(program, test, &flags.variables()).await
}

// === impl Availability ===

impl Availability {
    fn variables(&self) -> Vec<(&'static str, String)> {
        let mut variables = vec![(failures::VARIABLE, self.only.join(","))];
        if self.write {
            variables.push((WRITE, "1".to_owned()));
        }
        variables
    }
}

/// What failures are called.
fn names() -> PossibleValuesParser {
    let values = Failure::ALL.map(|one| PossibleValue::new(one.name()).help(one.what()));
    values.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_chosen_is_handed_on() {
        let flags = |only: &[Failure], write| Availability {
            only: only.iter().map(|one| one.name().to_owned()).collect(),
            write,
        };
        let all = flags(&[], false).variables();
        assert_eq!(all, [(failures::VARIABLE, String::new())]);
        let some = flags(&[Failure::Nodes, Failure::Single], true).variables();
        let expected = [
            (failures::VARIABLE, "nodes,single".to_owned()),
            (WRITE, "1".to_owned()),
        ];
        assert_eq!(some, expected);
    }
}
