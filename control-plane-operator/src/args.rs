//! The command line: one subcommand for each program. Each module defines its flags.
//!
//! To add a subcommand: a module with `Args` and `pub(crate) fn run(args: ...) -> Result<(), E>`, a variant here, and
//! an arm in `lib.rs`.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::{Parser, Subcommand};

use crate::{
    availability_prober, endpoint_resolver, etcd_backup, etcd_defrag, etcd_upload, feature_gates,
    fetch_etcd_certs, file_exists, hosted_cluster_config, ignition_server, kas_bootstrap,
    konnectivity_https_proxy, konnectivity_socks5_proxy, kubernetes_default_proxy, metrics_proxy,
    pki_operator, render, resolve_dns, run, sync_global_pullsecret, token_minter,
};

/// Operator of one hosted control plane, and helper programs of its components
#[derive(Debug, Parser)]
#[command(name = "control-plane-operator", version, max_term_width = 100, after_help = EXAMPLES)]
pub struct Cli {
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  Run in a pod, for the hosted control plane of its namespace:
    control-plane-operator run

  Render the objects of a hosted control plane locally, without a cluster:
    control-plane-operator render --hosted-control-plane hcp.yaml \\
      --release-images image-references --output out/";

/// The subcommand.
#[derive(Debug, Subcommand)]
#[non_exhaustive]
pub enum Command {
    /// Reconcile the hosted control plane of a namespace until SIGTERM or SIGINT.
    Run(Box<run::Args>),
    /// Write all objects of a hosted control plane as YAML files, without a cluster.
    Render(Box<render::Args>),
    /// Wait for the hosted API server and for prerequisites of a component.
    AvailabilityProber(Box<availability_prober::Args>),
    /// Wait until a DNS name resolves; optionally register this pod first.
    ResolveDns(Box<resolve_dns::Args>),
    /// Write a service account token of the hosted cluster to a file, and renew it.
    TokenMinter(Box<token_minter::Args>),
    /// Apply bootstrap manifests to a new API server, then wait for SIGTERM.
    KasBootstrap(Box<kas_bootstrap::Args>),
    /// Defragment etcd, one member at a time.
    EtcdDefragController(Box<etcd_defrag::Args>),
    /// Copy the certificates of an etcd client from a control plane's namespace to files.
    FetchEtcdCerts(Box<fetch_etcd_certs::Args>),
    /// Take a snapshot of etcd and upload it to S3.
    EtcdBackup(Box<etcd_backup::Args>),
    /// Upload a snapshot of etcd to S3 or Azure Blob Storage.
    EtcdUpload(Box<etcd_upload::Args>),
    /// Serve Ignition to new machines.
    IgnitionServer(Box<ignition_server::Args>),
    /// Reconcile resources in the hosted cluster, and report its status.
    HostedClusterConfigOperator(Box<hosted_cluster_config::Args>),
    /// Serve an HTTP proxy to the network of the hosted cluster.
    KonnectivityHttpsProxy(Box<konnectivity_https_proxy::Args>),
    /// Serve a SOCKS5 proxy to the network of the hosted cluster.
    KonnectivitySocks5Proxy(Box<konnectivity_socks5_proxy::Args>),
    /// Forward connections to the API server through an HTTP proxy, on a node.
    KubernetesDefaultProxy(Box<kubernetes_default_proxy::Args>),
    /// Keep kubelet's pull secret equal to that of the cluster, on a node.
    SyncGlobalPullsecret(Box<sync_global_pullsecret::Args>),
    /// Write the rendered FeatureGate to a ConfigMap (Job featuregate-generator).
    SyncFgConfigmap(Box<feature_gates::Args>),
    /// Report which pods of a control plane have certain labels.
    EndpointResolver(Box<endpoint_resolver::Args>),
    /// Serve metrics of the control plane to the hosted cluster's monitoring.
    MetricsProxy(Box<metrics_proxy::Args>),
    /// Issue and revoke break-glass certificates of a hosted cluster.
    ControlPlanePkiOperator(Box<pki_operator::Args>),
    /// Exit with 0 if a file exists, for probes.
    FileExists(file_exists::Args),
}

/// Names of subcommands that manifests of earlier releases start as programs of their own, by links to this one. Their
/// long flags may have one dash.
const PROGRAMS: [&str; 13] = [
    "availability-prober",
    "endpoint-resolver",
    "etcd-defrag-controller",
    "etcd-upload",
    "fetch-etcd-certs",
    "ignition-server",
    "kas-bootstrap",
    "konnectivity-https-proxy",
    "konnectivity-socks5-proxy",
    "metrics-proxy",
    "sync-fg-configmap",
    "sync-global-pullsecret",
    "token-minter",
];

/// Adds the subcommand if the program is started by the name of another one, which a link in the image has.
pub fn with_subcommand(args: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut args: Vec<_> = args.into_iter().collect();
    let started_by = |name: &&str| {
        let program = args.first().map(Path::new).and_then(Path::file_name);
        program == Some(OsStr::new(name))
    };
    if started_by(&pki_operator::PROGRAM) {
        args.insert(1, pki_operator::PROGRAM.into());
        return args;
    }
    let Some(name) = PROGRAMS.into_iter().find(started_by) else {
        return args;
    };
    let ended = args.iter().position(|arg| arg == "--");
    let flags = ended.unwrap_or(args.len());
    for flag in &mut args[1..flags] {
        if is_long_with_one_dash(flag) {
            let mut long = OsString::from("-");
            long.push(&flag);
            *flag = long;
        }
    }
    args.insert(1, name.into());
    args
}

/// Whether this is `-name` or `-name=value`, with a name of more than one letter.
fn is_long_with_one_dash(arg: &OsStr) -> bool {
    let name = arg
        .as_encoded_bytes()
        .strip_prefix(b"-")
        .unwrap_or_default();
    let name = name.split(|byte| *byte == b'=').next().unwrap_or_default();
    name.len() > 1 && name[0].is_ascii_alphabetic()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn links_select_their_subcommand() {
        for (line, expected) in [
            (
                "control-plane-operator metrics-proxy -a",
                "control-plane-operator metrics-proxy -a",
            ),
            (
                "/usr/bin/control-plane-pki-operator operator -x=1",
                "/usr/bin/control-plane-pki-operator control-plane-pki-operator operator -x=1",
            ),
            (
                "/usr/bin/token-minter -token-audience openshift --oneshot -h",
                "/usr/bin/token-minter token-minter --token-audience openshift --oneshot -h",
            ),
            (
                "availability-prober -target=https://a/-b -v=2 -5",
                "availability-prober availability-prober --target=https://a/-b -v=2 -5",
            ),
            (
                "konnectivity-https-proxy run -- -name",
                "konnectivity-https-proxy konnectivity-https-proxy run -- -name",
            ),
            ("file-exists -name", "file-exists -name"),
            ("", ""),
        ] {
            let words = line.split_whitespace().map(OsString::from);
            let expected: Vec<_> = expected.split_whitespace().map(OsString::from).collect();
            assert_eq!(with_subcommand(words), expected, "{line}");
        }
        let command = Cli::command();
        for name in PROGRAMS {
            assert!(command.find_subcommand(name).is_some(), "{name}");
        }
    }

    #[test]
    fn flags_of_earlier_manifests_are_accepted() {
        let line = [
            "/usr/bin/kas-bootstrap",
            "-resources-path=/work/manifests",
            "-kubeconfig=/kubeconfig",
            "-log-level",
            "debug",
        ];
        let cli = Cli::try_parse_from(with_subcommand(line.map(OsString::from))).unwrap();
        let Command::KasBootstrap(args) = cli.command else {
            panic!("another subcommand");
        };
        assert_eq!(args.resources_path, Path::new("/work/manifests"));
    }
}
