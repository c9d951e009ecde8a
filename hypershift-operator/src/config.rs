//! The command line, resolved before anything is started.

use std::time::Duration;

use api::group::GroupTable;
use support::args::Address;
use support::lease;

use crate::args::RunArgs;
use crate::error::Fatal;
use crate::scope::Scope;

/// Lease of the operator of private types. The name is that of releases before them, so that an upgrade hands over.
const LEASE: &str = "hypershift-operator-leader-elect";
/// Lease of operator-legacy.
const LEGACY_LEASE: &str = "hypershift-operator-legacy-leader-elect";

/// What to run, and how.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) scope: Scope,
    pub(crate) namespace: String,
    pub(crate) metrics_addr: Address,
    pub(crate) legacy_deployment: String,
    pub(crate) resync: Duration,
    pub(crate) drain: Duration,
    pub(crate) groups: GroupTable,
    pub(crate) lease: lease::Settings,
    pub(crate) leader_elect: bool,
}

// === impl Config ===

impl Config {
    /// Checks what flags cannot check one by one.
    pub(crate) fn new(args: &RunArgs) -> Result<Self, Fatal> {
        let usage = |message: String| Fatal::Usage { message };
        let mut groups = GroupTable::default();
        for pair in &args.groups {
            groups = groups
                .with(pair.clone())
                .map_err(|error| usage(format!("--group {pair}: {error}")))?;
        }
        let lease = lease_settings(args);
        if args.leader.leader_elect {
            lease
                .check()
                .map_err(|problem| usage(format!("{problem}: see --leader-elect-*")))?;
        }
        Ok(Self {
            scope: args.scope,
            namespace: args.namespace.clone(),
            metrics_addr: args.metrics_addr,
            legacy_deployment: args.legacy_deployment.clone(),
            resync: args.resync(),
            drain: args.drain_timeout.0,
            groups,
            lease,
            leader_elect: args.leader.leader_elect,
        })
    }
}

fn lease_settings(args: &RunArgs) -> lease::Settings {
    let name = match args.scope {
        Scope::Private | Scope::All => LEASE,
        Scope::Legacy => LEGACY_LEASE,
    };
    let leader = &args.leader;
    lease::Settings {
        namespace: args.namespace.clone(),
        name: leader
            .leader_elect_lease_name
            .clone()
            .unwrap_or_else(|| name.to_owned()),
        identity: lease::Settings::identity(&args.pod_name),
        duration: leader.leader_elect_lease_duration.0,
        renew_deadline: leader.leader_elect_renew_deadline.0,
        retry: leader.leader_elect_retry_period.0,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    fn config(flags: &[&str]) -> Result<Config, Fatal> {
        let fixed = [
            "hypershift-operator",
            "run",
            "--namespace=a",
            "--pod-name=b",
        ];
        let args = fixed.iter().chain(flags);
        let Command::Run(args) = Cli::try_parse_from(args).unwrap().command;
        Config::new(&args)
    }

    #[test]
    fn o02_operators_of_different_scope_have_leases_of_their_own() {
        let lease = |scope: &str| config(&[scope]).unwrap().lease.name;
        assert_ne!(lease("--scope=private"), lease("--scope=legacy"));
        assert_eq!(lease("--scope=private"), lease("--scope=all"));
    }

    #[test]
    fn flags_that_contradict_each_other_are_refused() {
        for flags in [
            ["--scope=all", "--leader-elect-renew-deadline=20s"],
            ["--scope=all", "--leader-elect-retry-period=12s"],
            ["--scope=all", "--leader-elect-lease-duration=1500ms"],
            ["--scope=all", "--group=cluster.x-k8s.io=a.example.com"],
        ] {
            let error = config(&flags).unwrap_err();
            assert!(matches!(error, Fatal::Usage { .. }), "{flags:?}: {error}");
        }
    }
}
