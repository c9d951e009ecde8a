//! `cargo xtask soak`: what tests show in seconds, for as long as somebody wants to look.

use std::process::{ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::process::Command;

/// The variable by which the race is told how long it runs.
const SECONDS: &str = "HYPERSHIFT_RACE_SECONDS";
/// The race.
const RACE: &str = "o02_o03_no_hosted_cluster_is_written_by_two_operators_in_one_epoch";

/// What is soaked.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Soak {
    /// Two replicas of each operator, whose leaders are killed and frozen at random while hosted clusters change. The
    /// audit log is judged at the end: no cluster written by two, none in two epochs at once.
    Operator {
        /// How long, for instance 5m or 1h.
        #[arg(long = "for", value_name = "TIME", default_value = "5m", value_parser = time)]
        period: Duration,
    },
}

/// Runs it; the figures come with its progress.
pub(crate) async fn run(soak: &Soak) -> Result<ExitCode> {
    let Soak::Operator { period } = soak;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["test", "--quiet", "--package", "e2e", "--test", "operator"])
        .args(["--", "--exact", RACE, "--nocapture"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env(SECONDS, period.as_secs().to_string())
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
    fn the_race_exists() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../e2e/tests/operator/main.rs");
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.contains(&format!("async fn {RACE}()")));
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../e2e/tests/operator/race.rs");
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.contains(SECONDS));
    }
}
