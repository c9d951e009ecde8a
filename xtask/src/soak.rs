//! `cargo xtask soak`: what tests show in seconds, for as long as somebody wants to look.

mod availability;
mod migration;

use std::process::{ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::process::Command;

/// The variable by which the race is told how long it runs.
const SECONDS: &str = "HYPERSHIFT_RACE_SECONDS";
/// The race.
const RACE: &str = "o02_o03_no_hosted_cluster_is_written_by_two_operators_in_one_epoch";

/// The test of two clusters of both kinds.
const SIDE_BY_SIDE: [&str; 2] = [
    "side_by_side",
    "o07_clusters_of_both_kinds_live_side_by_side",
];

/// The test of clusters without a cloud.
const PLATFORMS: [&str; 2] = [
    "platforms",
    "clusters_live_on_agents_and_on_machines_that_somebody_brings",
];

/// The program of a cluster's whole life, and the variable by which it is told on which side.
const LIFE: &str = "hosted_cluster";
const TYPES: &str = "HYPERSHIFT_TYPES";

/// The variable by which that test is told how long nothing may happen, and the test.
const WATCH: &str = "HYPERSHIFT_MIGRATION_WATCH";
const MANAGERS: &str = "m01_m04_m20b_stock_managers_go_on_with_what_was_moved";
/// The variables by which a fleet is told its size and how often its operator is killed, and the test.
const FLEET: [&str; 2] = ["HYPERSHIFT_FLEET", "HYPERSHIFT_FLEET_KILLS"];
const MIGRATED: &str = "m02_m19_m20_a_fleet_migrates_by_itself";
/// The test of a migration under load.
const LIVE: [&str; 2] = [
    "migration_live",
    "m01_m20b_a_cluster_with_workers_migrates_under_load",
];
/// The variables by which faults are chosen, and the test.
const FAULTS: [&str; 3] = [
    "HYPERSHIFT_FAULTS",
    "HYPERSHIFT_FAULTS_SEED",
    "HYPERSHIFT_FAULTS_PART",
];
const OUTLIVED: &str = "o03_o05_o06_o07_hosted_clusters_outlive_the_faults_of_their_operators";

/// What is soaked.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Soak {
    /// On three real nodes, what a hosted control plane is made of fails, one after another: pods, members of etcd and
    /// their data, the management cluster's control plane, nodes. A client reads and writes the hosted API all the time;
    /// what it sees is held to docs/failures.md. Needs root, and takes about ten minutes.
    Availability(availability::Availability),
    /// Small clusters are moved between the standard and the private groups, to and fro. Each migration is killed at one
    /// instant, before or after a write, and has to end with everything on one side and everything equal. One request of
    /// ten fails in every fourth run, and kube-controller-manager is killed all the time.
    Migration(migration::Migration),
    /// Clusters of stock Cluster API, one of them of a class, are moved to the private groups while their managers are
    /// away, live on behind proxies (they scale, roll out and are repaired), and are moved back. After each move nothing
    /// may happen by itself for some time.
    Managers {
        /// For how long, for instance 5m or 1h.
        #[arg(long = "for", value_name = "TIME", default_value = "5m", value_parser = time)]
        period: Duration,
    },
    /// Hosted clusters on standard types, of which some cannot migrate, migrate by themselves while their operator is
    /// killed. The others work on, say why, and go when they are mended.
    MigrationFleet {
        /// How many clusters there are.
        #[arg(long, value_name = "NUMBER", default_value_t = 50, value_parser = clap::value_parser!(u32).range(5..=200))]
        clusters: u32,
        /// How often the operator is killed.
        #[arg(long, value_name = "NUMBER", default_value_t = 20)]
        kills: u32,
    },
    /// A hosted cluster with a worker migrates while a client reads and writes its API, and a workload runs on its node.
    /// The client may see no error, and the cloud no call that changes anything. Needs Linux and root, and takes about
    /// ten minutes.
    MigrationLive,
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
        /// Try the part with this number, from 1, of the parts that --one-in and --seed divide all faults into: all parts
        /// together try each fault once, one after the other, side by side, or on several machines.
        #[arg(long, value_name = "NUMBER")]
        part: Option<u32>,
    },
    /// A hosted cluster on the standard groups and one on the private ones, with a management cluster of two nodes to
    /// themselves. Both have workers and workloads, are scaled and destroyed without the other's noticing, and neither
    /// can read the other's Secrets or reach into it. Everything logs at trace, and no secret may be in a log. Needs
    /// Linux and root, and takes about ten minutes.
    SideBySide,
    /// Hosted clusters without a cloud: one whose machines an Agent service has, which are taken, given back and taken
    /// again, and one whose user brings a machine. A stand-in takes the place of the provider for Agent and of its
    /// service. Needs Linux and root, and takes about ten minutes.
    Platforms,
    /// The whole life of a hosted cluster on nodes: workers join, run something, are scaled, repaired and upgraded, by
    /// new machines and in place; the control plane is upgraded; all of it is destroyed. Tests do it on private types.
    /// Needs Linux and root, and takes about ten minutes.
    Life {
        /// The groups that its Cluster API objects are in.
        #[arg(long, value_enum, default_value_t = Types::Standard)]
        types: Types,
    },
}

/// Groups of Cluster API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Types {
    /// Those of every Cluster API: legacy mode.
    Standard,
    /// Ours.
    Private,
}

/// Runs it; the figures come with its progress.
pub(crate) async fn run(soak: &Soak) -> Result<ExitCode> {
    match soak {
        Soak::Availability(flags) => availability::run(flags).await,
        Soak::Migration(flags) => migration::run(flags).await,
        Soak::Managers { period } => {
            let seconds = period.as_secs().to_string();
            test("migration_managers", MANAGERS, &[(WATCH, seconds)]).await
        }
        Soak::MigrationFleet { clusters, kills } => {
            let [fleet, often] = FLEET;
            let chosen = [(fleet, clusters.to_string()), (often, kills.to_string())];
            test("migration_fleet", MIGRATED, &chosen).await
        }
        Soak::MigrationLive => {
            let [program, name] = LIVE;
            test(program, name, &[]).await
        }
        Soak::Operator { period } => {
            let seconds = period.as_secs().to_string();
            test("operator", RACE, &[(SECONDS, seconds)]).await
        }
        Soak::Faults { one_in, seed, part } => {
            let [faults, by, which] = FAULTS;
            let mut chosen = vec![(faults, one_in.to_string()), (by, seed.to_string())];
            chosen.extend(part.map(|part| (which, part.to_string())));
            test("hosted_clusters_faults", OUTLIVED, &chosen).await
        }
        Soak::SideBySide => {
            let [program, name] = SIDE_BY_SIDE;
            test(program, name, &[]).await
        }
        Soak::Platforms => {
            let [program, name] = PLATFORMS;
            test(program, name, &[]).await
        }
        Soak::Life { types } => tests(LIFE, &[], &[(TYPES, types.name().to_owned())]).await,
    }
}

// === impl Types ===

impl Types {
    /// How the tests call them.
    fn name(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Private => "private",
        }
    }
}

/// Runs one test of a program, with variables.
async fn test(program: &str, name: &str, variables: &[(&str, String)]) -> Result<ExitCode> {
    tests(program, &["--exact", name], variables).await
}

/// Runs those tests of a program that are chosen, or all, with variables.
async fn tests(program: &str, chosen: &[&str], variables: &[(&str, String)]) -> Result<ExitCode> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let variables = variables.iter().map(|(name, value)| (name, value));
    let status = Command::new(cargo)
        .args(["test", "--quiet", "--package", "e2e", "--test", program])
        .args(["--", "--nocapture", "--include-ignored"])
        .args(chosen)
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
        let [program, name] = availability::REPLAYED;
        let text = read(&format!("{program}/main.rs"));
        assert!(text.contains(&format!("async fn {name}()")));
        let text = read(&format!("{program}/choice.rs"));
        assert!(text.contains("e2e::failures::{Failure, VARIABLE}"));
        let text = read("migration_managers/main.rs");
        assert!(text.contains(&format!("async fn {MANAGERS}()")) && text.contains(WATCH));
        let text = read("hosted_clusters_faults/choice.rs");
        assert!(FAULTS.iter().all(|name| text.contains(name)));
        let text = read("migration_fleet/main.rs");
        assert!(text.contains(&format!("async fn {MIGRATED}()")));
        assert!(read("migration_fleet/fleet.rs").contains(FLEET[0]));
        assert!(read("migration_fleet/killed.rs").contains(FLEET[1]));
        let [program, name] = LIVE;
        let text = read(&format!("{program}/main.rs"));
        assert!(text.contains(&format!("async fn {name}()")));
        let [program, name] = SIDE_BY_SIDE;
        let text = read(&format!("{program}/main.rs"));
        assert!(text.contains(&format!("async fn {name}()")));
        assert!(text.contains("cargo xtask soak side-by-side"));
        let [program, name] = PLATFORMS;
        let text = read(&format!("{program}/main.rs"));
        assert!(text.contains(&format!("async fn {name}()")));
        assert!(text.contains("cargo xtask soak platforms"));
        let text = read(&format!("{LIFE}/main.rs"));
        assert!(text.contains(&format!("{TYPES:?}")));
        for types in [Types::Standard, Types::Private] {
            assert!(text.contains(&format!("{:?}", types.name())));
        }
    }
}
