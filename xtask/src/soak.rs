//! `cargo xtask soak`: what tests show in seconds, for as long as somebody wants to look.

mod migration;

use std::process::{ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::process::Command;

/// The variable by which the race is told how long it runs.
const SECONDS: &str = "HYPERSHIFT_RACE_SECONDS";
/// The race.
const RACE: &str = "o02_o03_no_hosted_cluster_is_written_by_two_operators_in_one_epoch";

/// The variables by which faults are chosen, and the test.
const FAULTS: [&str; 2] = ["HYPERSHIFT_FAULTS", "HYPERSHIFT_FAULTS_SEED"];
const OUTLIVED: &str = "o03_o05_o06_o07_hosted_clusters_outlive_the_faults_of_their_operators";

/// What is soaked.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Soak {
    /// Small clusters are moved between the standard and the private groups, to and fro. Each migration is killed at one
    /// instant, before or after a write, and has to end with everything on one side and everything equal. One request of
    /// ten fails in every fourth run, and kube-controller-manager is killed all the time.
    Migration(migration::Migration),
    /// Two replicas of each operator, whose leaders are killed and frozen at random while hosted clusters change. The
    /// audit log is judged at the end: no cluster written by two, none in two epochs at once.
    Operator {
        /// How long, for instance 5m or 1h.
        #[arg(long = "for", value_name = "TIME", default_value = "5m", value_parser = time)]
        period: Duration,
    },
    /// hypershift-operator and the control-plane-operator die at each write of a hosted cluster's life, before the API
    /// server knows of it and after, and the cluster is deleted at each step of its making. What comes of it is compared
    /// with a life in which nobody dies. Takes about an hour.
    Faults {
        /// Try one fault in so many, and not all of them.
        #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
        one_in: u32,
        /// Which ones these are: another number, another choice.
        #[arg(long, value_name = "NUMBER", default_value_t = 1)]
        seed: u32,
    },
}

/// Runs it; the figures come with its progress.
pub(crate) async fn run(soak: &Soak) -> Result<ExitCode> {
    match soak {
        Soak::Migration(flags) => migration::run(flags).await,
        Soak::Operator { period } => {
            let seconds = period.as_secs().to_string();
            test("operator", RACE, &[(SECONDS, seconds)]).await
        }
        Soak::Faults { one_in, seed } => {
            let [faults, by] = FAULTS;
            let chosen = [(faults, one_in.to_string()), (by, seed.to_string())];
            test("hosted_clusters_faults", OUTLIVED, &chosen).await
        }
    }
}

/// Runs one test of a program, with variables.
async fn test(program: &str, name: &str, variables: &[(&str, String)]) -> Result<ExitCode> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let variables = variables.iter().map(|(name, value)| (name, value));
    let status = Command::new(cargo)
        .args(["test", "--quiet", "--package", "e2e", "--test", program])
        .args(["--", "--exact", name, "--nocapture", "--include-ignored"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .envs(variables)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .status()
        .await
        .context("cannot run cargo")?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// A number with `s`, `m` or `h`.
fn time(text: &str) -> Result<Duration, String> {
    let unit = match text.chars().last() {
        Some('s') => 1,
        Some('m') => 60,
        Some('h') => 3600,
        _ => return Err("write a number with s, m or h, for instance 5m".to_owned()),
    };
    let number = text[..text.len() - 1].parse::<u64>();
    let seconds = number.ok().and_then(|number| number.checked_mul(unit));
    match seconds {
        Some(seconds @ 10..=86_400) => Ok(Duration::from_secs(seconds)),
        _ => Err("write a time between 10s and 24h".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit_and_a_bound() {
        for (text, seconds) in [
            ("5m", Some(300)),
            ("1h", Some(3600)),
            ("10s", Some(10)),
            ("9s", None),
            ("25h", None),
            ("5", None),
            ("", None),
            ("m", None),
            ("5é", None),
        ] {
            let found = time(text).ok().map(|period| period.as_secs());
            assert_eq!(found, seconds, "{text}");
        }
    }

    #[test]
    fn what_is_soaked_exists() {
        let read = |file: &str| {
            let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/../e2e/tests");
            std::fs::read_to_string(format!("{tests}/{file}")).unwrap()
        };
        let text = read("operator/main.rs");
        assert!(text.contains(&format!("async fn {RACE}()")));
        assert!(read("operator/race.rs").contains(SECONDS));
        let text = read("hosted_clusters_faults/main.rs");
        assert!(text.contains(&format!("async fn {OUTLIVED}()")));
        let text = read("hosted_clusters_faults/choice.rs");
        assert!(FAULTS.iter().all(|name| text.contains(name)));
    }
}
