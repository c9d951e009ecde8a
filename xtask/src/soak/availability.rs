//! `cargo xtask soak availability`: what a hosted control plane bears.

use std::process::ExitCode;

use anyhow::Result;
use clap::ValueEnum;

/// The variable by which failures are chosen, and the one by which their figures are written.
pub(super) const VARIABLES: [&str; 2] = ["HYPERSHIFT_FAILURES", "UPDATE_GOLDEN"];
/// The test, and the program that it is in.
pub(super) const REPLAYED: [&str; 2] = [
    "highly_available",
    "o08_a_control_plane_bears_what_it_has_replicas_for",
];

/// Flags of `soak availability`.
#[derive(Debug, clap::Args)]
pub(crate) struct Availability {
    /// Replay this one only; may be given several times
    #[arg(long = "only", value_name = "FAILURE", value_enum)]
    only: Vec<Failure>,
    /// Write what the client saw into docs/failures.md, in place of comparing the two
    #[arg(long)]
    write: bool,
}

/// A failure, or several of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Failure {
    /// Each member of etcd crashes
    Members,
    /// Each kube-apiserver crashes
    Servers,
    /// A pod of every other component is deleted
    Others,
    /// A member of etcd loses its data
    Data,
    /// Two of three members of etcd are lost
    Quorum,
    /// The management cluster's control plane stops
    Management,
    /// Each node is lost
    Nodes,
    /// With a single replica, etcd crashes, and kube-apiserver
    Single,
}

/// Runs it.
pub(crate) async fn run(flags: &Availability) -> Result<ExitCode> {
    let [program, test] = REPLAYED;
    super::test(program, test, &flags.variables()).await
}

// === impl Availability ===

impl Availability {
    fn variables(&self) -> Vec<(&'static str, String)> {
        let [failures, write] = VARIABLES;
        let mut variables = vec![(failures, names(&self.only).join(","))];
        if self.write {
            variables.push((write, "1".to_owned()));
        }
        variables
    }
}

/// What failures are called.
pub(super) fn names(failures: &[Failure]) -> Vec<String> {
    let values = failures.iter().filter_map(Failure::to_possible_value);
    values.map(|value| value.get_name().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_chosen_is_handed_on() {
        let flags = |only: &[Failure], write| Availability {
            only: only.to_vec(),
            write,
        };
        let [failures, update] = VARIABLES;
        let all = flags(&[], false).variables();
        assert_eq!(all, [(failures, String::new())]);
        let some = flags(&[Failure::Nodes, Failure::Single], true).variables();
        let expected = [
            (failures, "nodes,single".to_owned()),
            (update, "1".to_owned()),
        ];
        assert_eq!(some, expected);
    }
}
