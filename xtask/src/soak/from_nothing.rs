//! `cargo xtask soak from-nothing`: commands for clouds that are killed at every call.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;

/// The module with the tests, one for each cloud.
pub(super) const MODULE: &str = "from_nothing";
/// The variables: of how many kills one is tried, and the limit in seconds.
pub(super) const VARIABLES: [&str; 2] = [
    "HYPERSHIFT_FROM_NOTHING_EVERY",
    "HYPERSHIFT_FROM_NOTHING_SECONDS",
];
/// What the names of the tests have in common.
const CONTINUED: &str = "_commands_continue_after_a_kill_at_any_call";

/// Flags of `soak from-nothing`.
#[derive(Debug, clap::Args)]
pub(crate) struct FromNothing {
    /// The cloud, instead of all of them, one after another
    #[arg(long, value_enum, value_name = "NAME")]
    cloud: Option<Cloud>,
    /// Try one of this number of kills, instead of all
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    every: u32,
    /// Time limit for each cloud, for example 30m or 3h
    #[arg(long, value_name = "TIME", default_value = "3h", value_parser = super::time)]
    limit: Duration,
}

/// Clouds for which `hcp` creates infrastructure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Cloud {
    /// Amazon Web Services
    Aws,
    /// Microsoft Azure
    Azure,
    /// Google Cloud
    Gcp,
    /// IBM Power Virtual Server
    Powervs,
}

/// Runs one of them or all.
pub(super) fn run(flags: &FromNothing) -> Result<ExitCode> {
    let variables = flags.variables();
    match flags.cloud {
        Some(cloud) => super::test(MODULE, &cloud.test(), &variables),
        None => super::tests(MODULE, &[CONTINUED], &variables),
    }
}

// === impl FromNothing ===

impl FromNothing {
    fn variables(&self) -> Vec<(&'static str, String)> {
        let values = [self.every.to_string(), self.limit.as_secs().to_string()];
        VARIABLES.into_iter().zip(values).collect()
    }
}

// === impl Cloud ===

impl Cloud {
    /// Its test.
    fn test(self) -> String {
        let name = match self {
            Self::Aws => "aws",
            Self::Azure => "azure",
            Self::Gcp => "gcp",
            Self::Powervs => "powervs",
        };
        format!("{name}{CONTINUED}")
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn every_cloud_has_a_test_that_names_its_command() {
        let source = crate::sources::read("e2e/tests/from_nothing/main.rs").unwrap();
        for cloud in Cloud::value_variants() {
            let test = format!("async fn {}()", cloud.test());
            assert!(source.contains(&test), "{test}");
            let value = cloud.to_possible_value().unwrap();
            let command = format!(
                "cargo xtask soak from-nothing --cloud {}\"",
                value.get_name()
            );
            assert!(source.contains(&command), "{command}");
        }
        let all = Cloud::value_variants().len();
        assert_eq!(source.matches(CONTINUED).count(), all);
    }

    #[test]
    fn flags_are_passed_on() {
        let flags = FromNothing {
            cloud: None,
            every: 4,
            limit: Duration::from_mins(30),
        };
        let [every, seconds] = VARIABLES;
        let expected = [(every, "4".to_owned()), (seconds, "1800".to_owned())];
        assert_eq!(flags.variables(), expected);
    }
}
