//! `cargo xtask soak`: runs end-to-end scenarios for a given time.

mod availability;
mod from_nothing;
mod migration;
mod providers;

use std::process::{Command, ExitCode};
use std::time::Duration;

use crate::cargo;
use crate::programs::announce;
use anyhow::{Context, Result};

/// The variable that says how long the race runs.
const SECONDS: &str = "HYPERSHIFT_RACE_SECONDS";
/// The race.
const RACE: &str = "one_operator_writes_to_a_cluster_in_each_epoch";

/// The test of two clusters of both kinds.
const SIDE_BY_SIDE: [&str; 2] = [
    "side_by_side",
    "clusters_on_private_and_standard_types_coexist",
];

/// The test of a HostedCluster whose control plane namespace another cluster has.
const COLLISION: [&str; 2] = [
    "namespace_collision",
    "a_running_cluster_survives_a_namespace_collision",
];

/// The module with tests of clusters without a cloud.
const PLATFORMS: &str = "platforms";

/// The test of the tunnel to nodes, and the variable and its value with which it measures more.
const TUNNEL: [&str; 2] = [
    "tunnel",
    "a_hosted_api_server_reaches_its_nodes_through_konnectivity",
];
const FIGURES: [&str; 2] = ["HYPERSHIFT_TUNNEL_FIGURES", "full"];

/// The module with tests of operators from catalogs.
const CATALOGS: &str = "olm";

/// The test of nodes that Karpenter makes.
const KARPENTER: [&str; 2] = ["karpenter", "karpenter_makes_replaces_and_removes_nodes"];

/// The test of log-in.
const LOGIN: [&str; 2] = ["login", "users_of_an_external_provider_log_in"];

/// The test of a control plane's rollout and upgrade.
const ROLLOUT: [&str; 2] = ["rollout", "all_components_roll_out_in_order"];

/// The tests of a cluster's whole life, and the variable that chooses its types.
const LIFE: &str = "hosted_cluster";
const TYPES: &str = "HYPERSHIFT_TYPES";

/// The variable that says how long nothing may happen, and the test.
const WATCH: &str = "HYPERSHIFT_MIGRATION_WATCH";
const MANAGERS: &str = "cluster_api_managers_continue_after_migration";
/// The variables for the size of a fleet and how often its operator is killed, and the test.
const FLEET: [&str; 2] = ["HYPERSHIFT_FLEET", "HYPERSHIFT_FLEET_KILLS"];
const MIGRATED: &str = "a_fleet_migrates_automatically";
/// The variables that select faults, and the test.
const FAULTS: [&str; 3] = [
    "HYPERSHIFT_FAULTS",
    "HYPERSHIFT_FAULTS_SEED",
    "HYPERSHIFT_FAULTS_PART",
];
const OUTLIVED: &str = "hosted_clusters_survive_operator_failures";

/// The modules with tests that need nodes.
const NODES: [&str; 11] = [
    availability::REPLAYED[0],
    CATALOGS,
    COLLISION[0],
    KARPENTER[0],
    LOGIN[0],
    ROLLOUT[0],
    LIFE,
    migration::LIVE[0],
    PLATFORMS,
    SIDE_BY_SIDE[0],
    TUNNEL[0],
];

/// The scenario.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Soak {
    /// Failures of a hosted control plane on three real nodes, one after another: pods, members of etcd and their data,
    /// the management cluster's control plane, nodes. A client reads and writes the hosted API all the time;
    /// the result is compared with docs/failures.md. Requires root, and takes about 18 minutes.
    Availability(availability::Availability),
    /// Small clusters migrate between the standard and the private groups, in both directions. Each migration is killed
    /// at one instant, before or after a write, and has to end with all objects in one group and everything equal. One request of
    /// ten fails in every fourth run, and kube-controller-manager is killed all the time.
    Migration(migration::Migration),
    /// Clusters of stock Cluster API, one of them of a class, are moved to the private groups while their managers are
    /// stopped, continue behind proxies (they scale, roll out and are repaired), and are moved back. After each move
    /// there must be no change for some time.
    Managers {
        /// Duration, for example 5m or 1h
        #[arg(long = "for", value_name = "TIME", default_value = "5m", value_parser = time)]
        period: Duration,
    },
    /// Hosted clusters of every platform on standard types migrate automatically while their operator is killed; then one
    /// of each platform is rolled back. Some of them cannot migrate: they keep working, report why, and migrate when they
    /// are fixed. No cloud and no provider is there: the objects that providers leave are written by the test.
    MigrationFleet {
        /// How many clusters there are: four that cannot migrate, and the others on one platform after the other.
        #[arg(long, value_name = "NUMBER", default_value_t = 50, value_parser = clap::value_parser!(u32).range(13..=200))]
        clusters: u32,
        /// How often the operator is killed.
        #[arg(long, value_name = "NUMBER", default_value_t = 20)]
        kills: u32,
    },
    /// A hosted cluster with a worker migrates while a client reads and writes its API, and a workload runs on its node.
    /// The client must see no error, and the platform of the worker must get no request that changes anything. Requires
    /// Linux and root, and takes about ten minutes.
    MigrationLive(migration::Live),
    /// Two replicas of each operator; their leaders are killed and frozen at random while hosted clusters change. The
    /// audit log is checked at the end: no cluster is written by two operators, none in two epochs at once.
    Operator {
        /// Duration, for example 5m or 1h
        #[arg(long = "for", value_name = "TIME", default_value = "5m", value_parser = time)]
        period: Duration,
    },
    /// hypershift-operator and the control-plane-operator are killed at each write of a hosted cluster's lifecycle,
    /// before the API server receives it and after, and the cluster is deleted at each step of its creation. The
    /// cluster has all components that there are with public access on AWS: all but those of other platforms and the
    /// router. The result is compared with a lifecycle without kills. Takes some hours: --part divides it.
    Faults {
        /// Try one of this number of faults, instead of all.
        #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
        one_in: u32,
        /// The seed that selects them.
        #[arg(long, value_name = "NUMBER", default_value_t = 1)]
        seed: u32,
        /// Try the part with this number, from 1, of the parts that --one-in and --seed divide all faults into: all parts
        /// together try each fault once, one after the other, in parallel, or on several machines.
        #[arg(long, value_name = "NUMBER")]
        part: Option<u32>,
    },
    /// `hcp` creates and destroys networks and identities of clusters in an empty account of each cloud, and is killed at
    /// every call to the cloud: before the cloud receives it and, if it writes, after it has answered. It is run again, and
    /// the account must have the same as without the kill, and nothing twice. Takes half an hour to an hour for each cloud.
    FromNothing(from_nothing::FromNothing),
    /// A hosted cluster on the standard groups and one on the private ones, with a management cluster of two nodes to
    /// themselves. Both have workers and workloads, are scaled and destroyed without effect on the other, and neither
    /// can read the other's Secrets or reach its pods. Everything logs at trace, and no secret may be in a log.
    /// Requires Linux and root, and takes about ten minutes.
    SideBySide,
    /// A HostedCluster whose control plane namespace a running cluster has is created, refused and deleted three times: not a
    /// byte of the running cluster changes, and its worker keeps working. `cargo xtask test` has the same without nodes.
    /// Requires Linux and root, and takes about five minutes.
    Collision,
    /// Operator Lifecycle Manager, unmodified, installs an operator from a catalog: of the control plane, and then of another
    /// cluster's nodes. One that does not support the next minor version holds the upgrade. Requires Linux and root, and takes
    /// about 20 minutes.
    Catalogs,
    /// AutoNode with the released Karpenter, which is built and takes minutes the first time: a pod that does not fit gets a
    /// node, which consolidation removes; a node is replaced when its class changes and after an upgrade of the control
    /// plane, not before; unsupported versions are refused. The cluster is created in an empty account of the fake cloud,
    /// and leaves nothing there. Requires Linux and root, and takes about 20 minutes.
    Karpenter,
    /// Log-in to a hosted cluster: the password of kubeadmin, identity providers that are refused, and tokens of a real
    /// `OpenID` Connect provider. Requires Linux and root, and takes about ten minutes.
    Login,
    /// The stock provider of each platform, directly and behind the proxy, makes the same requests with the same result,
    /// and writes nothing at rest. Providers are built, which takes minutes for each the first time; stand-ins replace
    /// the clouds, as far as one machine needs them. Takes about five minutes for each provider.
    Providers(providers::Providers),
    /// All components of a control plane on one node roll out in the order of their dependencies, when the cluster is
    /// created and when it is upgraded. Requires Linux and root, and takes about 15 minutes.
    Rollout,
    /// Hosted clusters without a cloud: one with machines of an Agent service, which are bound, released and bound
    /// again, one with a machine that a user provides, and two with virtual machines of KubeVirt: one beside its control
    /// plane, with ingress, a repair and an upgrade, and one on another infrastructure cluster. Stand-ins replace the
    /// provider for Agent, its service, and KubeVirt. Requires Linux and root, and takes about half an hour.
    Platforms,
    /// The tunnel between a hosted API server and its nodes: logs, exec, attach, port-forward, top, webhooks; then the
    /// loss of the server, of an agent, and of all agents for a minute; then 100 commands at once and a stream of 1 GiB,
    /// each next to a direct connection. Requires Linux and root, and takes about fifteen minutes.
    Tunnel,
    /// The whole lifecycle of a hosted cluster on nodes: workers join, run workloads, are scaled, repaired and upgraded,
    /// by replacement and in place; the control plane is upgraded; a pool is tagged, autoscaled, and loses a spot
    /// instance; each kind of node configuration is changed; everything is destroyed. The released AWS cloud controller
    /// manager, which is built and takes minutes the first time, initializes nodes and makes load balancers.
    /// `cargo xtask test` runs the part with scaling only, with private types and without that program. Requires Linux
    /// and root, and takes about an hour.
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
pub(crate) fn run(soak: &Soak) -> Result<ExitCode> {
    match soak {
        Soak::Availability(flags) => availability::run(flags),
        Soak::Migration(flags) => migration::run(flags),
        Soak::Managers { period } => {
            let seconds = period.as_secs().to_string();
            test("migration_managers", MANAGERS, &[(WATCH, seconds)])
        }
        Soak::MigrationFleet { clusters, kills } => {
            let [fleet, often] = FLEET;
            let chosen = [(fleet, clusters.to_string()), (often, kills.to_string())];
            test("migration_fleet", MIGRATED, &chosen)
        }
        Soak::MigrationLive(flags) => migration::run_live(flags),
        Soak::Operator { period } => {
            let seconds = period.as_secs().to_string();
            test("operator", RACE, &[(SECONDS, seconds)])
        }
        Soak::Faults { one_in, seed, part } => {
            let [faults, by, which] = FAULTS;
            let mut chosen = vec![(faults, one_in.to_string()), (by, seed.to_string())];
            chosen.extend(part.map(|part| (which, part.to_string())));
            test("hosted_clusters_faults", OUTLIVED, &chosen)
        }
        Soak::FromNothing(flags) => from_nothing::run(flags),
        Soak::SideBySide => fixed(SIDE_BY_SIDE),
        Soak::Collision => fixed(COLLISION),
        Soak::Platforms => tests(PLATFORMS, &[&format!("{PLATFORMS}::")], &[]),
        Soak::Catalogs => tests(CATALOGS, &[&format!("{CATALOGS}::")], &[]),
        Soak::Karpenter => fixed(KARPENTER),
        Soak::Login => fixed(LOGIN),
        Soak::Providers(flags) => providers::run(flags),
        Soak::Rollout => fixed(ROLLOUT),
        Soak::Tunnel => {
            let [program, name] = TUNNEL;
            let [variable, value] = FIGURES;
            test(program, name, &[(variable, value.to_owned())])
        }
        Soak::Life { types } => {
            let selected = format!("{LIFE}::");
            tests(LIFE, &[&selected], &[(TYPES, types.name().to_owned())])
        }
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

/// The program that the tests of a module are in.
fn program(module: &str) -> &'static str {
    if NODES.contains(&module) {
        "nodes"
    } else {
        "control_plane"
    }
}

/// Runs the one test of a soak that has nothing to choose: its module and name.
fn fixed([module, name]: [&str; 2]) -> Result<ExitCode> {
    test(module, name, &[])
}

/// Runs one test of a module, with variables.
fn test(module: &str, name: &str, variables: &[(&str, String)]) -> Result<ExitCode> {
    let name = format!("{module}::{name}");
    tests(module, &["--exact", &name], variables)
}

/// Runs those tests of a module that are selected, with variables.
fn tests(module: &str, chosen: &[&str], variables: &[(&str, String)]) -> Result<ExitCode> {
    let program = program(module);
    announce(&format!("building the tests {program}"));
    let built = cargo::build_test(program)?;
    let status = Command::new(&built.path)
        // One after another: a machine with two processors bears one control plane.
        .args(["--nocapture", "--include-ignored", "--test-threads=1"])
        .args(chosen)
        .current_dir(&built.directory)
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .status()
        .with_context(|| format!("failed to run {}", built.path.display()))?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// A number with `s`, `m` or `h`. The parser of the API types is in a crate that xtask must not build.
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
    fn the_last_run_of_each_soak_is_recorded() {
        use clap::Subcommand;
        let page = crate::sources::read("docs/soaks.md").unwrap();
        let commands = Soak::augment_subcommands(clap::Command::new("soak"));
        for command in commands.get_subcommands() {
            let row = format!("| `soak {}", command.get_name());
            assert!(page.contains(&row), "docs/soaks.md has no line for {row}");
        }
    }

    #[test]
    fn modules_are_in_the_programs_that_are_run() {
        let others = [
            providers::MODULE,
            from_nothing::MODULE,
            "operator",
            "migration",
            "migration_fleet",
            "migration_managers",
        ];
        for module in NODES.into_iter().chain(others) {
            let file = format!("e2e/tests/{}.rs", program(module));
            let text = crate::sources::read(&file).unwrap();
            assert!(text.contains(&format!("mod {module};")), "{file}: {module}");
        }
    }

    #[test]
    fn soaked_tests_exist() {
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
        assert!(text.contains("std::env::var(VARIABLE)"));
        let [program, name] = migration::KILLED;
        let text = read(&format!("{program}/main.rs"));
        assert!(text.contains(&format!("async fn {name}()")));
        assert!(migration::VARIABLES.iter().all(|name| text.contains(name)));
        let text = read("migration_managers/main.rs");
        assert!(text.contains(&format!("async fn {MANAGERS}()")) && text.contains(WATCH));
        let text = read("from_nothing/run.rs");
        assert!(
            from_nothing::VARIABLES
                .iter()
                .all(|name| text.contains(name))
        );
        let text = read("hosted_clusters_faults/choice.rs");
        assert!(FAULTS.iter().all(|name| text.contains(name)));
        let text = read("migration_fleet/main.rs");
        assert!(text.contains(&format!("async fn {MIGRATED}()")));
        assert!(read("migration_fleet/fleet.rs").contains(FLEET[0]));
        assert!(read("migration_fleet/killed.rs").contains(FLEET[1]));
        let [program, name] = migration::LIVE;
        let text = read(&format!("{program}/main.rs"));
        assert!(text.contains(&format!("async fn {name}()")));
        for word in migration::words_of_live() {
            assert!(text.contains(&format!("{word:?}")), "{word}");
        }
        let text = read(&format!("{CATALOGS}/main.rs"));
        assert_eq!(text.matches("cargo xtask soak catalogs").count(), 2);
        let text = read(&format!("{PLATFORMS}/main.rs"));
        assert_eq!(text.matches("cargo xtask soak platforms").count(), 2);
        let named = [
            (SIDE_BY_SIDE, "side-by-side"),
            (COLLISION, "collision"),
            (KARPENTER, "karpenter"),
            (LOGIN, "login"),
            (ROLLOUT, "rollout"),
            (TUNNEL, "tunnel"),
        ];
        for ([module, name], soak) in named {
            let text = read(&format!("{module}/main.rs"));
            assert!(text.contains(&format!("async fn {name}()")), "{soak}");
            assert!(text.contains(&format!("cargo xtask soak {soak}")), "{soak}");
        }
        let text = read(&format!("{}/figures.rs", TUNNEL[0]));
        assert!(
            FIGURES
                .iter()
                .all(|word| text.contains(&format!("{word:?}")))
        );
        let text = read(&format!("{LIFE}/main.rs"));
        assert!(text.contains(&format!("{TYPES:?}")));
        for types in [Types::Standard, Types::Private] {
            assert!(text.contains(&format!("{:?}", types.name())));
        }
    }
}
