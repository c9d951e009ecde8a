//! The operator of one hosted control plane, and the helpers of its components: one binary with subcommands.
//!
//! - [`components`]: the components of a control plane, and how to add one; the crate `control-plane-component` is
//!   their framework.
//! - [`render`]: renders all objects of a hosted control plane without a cluster; [`mod@run`]: the operator.
//! - [`infra`]: Services, Routes and addresses; [`pki`]: certificates; `private_link`: endpoints of private clusters.
//! - The other modules are the helpers that run in pods of components.

pub mod args;
pub mod availability_prober;
mod capabilities;
pub mod components;
mod encryption;
pub mod endpoint_resolver;
pub mod error;
pub mod etcd_backup;
pub mod etcd_defrag;
pub mod etcd_upload;
pub mod feature_gates;
pub mod fetch_etcd_certs;
pub mod file_exists;
mod hex;
pub mod hosted_cluster_config;
mod hosted_control_plane;
mod https;
pub mod ignition_server;
pub mod infra;
pub mod kas_bootstrap;
mod konnectivity;
pub mod konnectivity_https_proxy;
pub mod konnectivity_socks5_proxy;
mod kubeadmin;
pub mod kubernetes_default_proxy;
mod machine_config;
pub mod metrics_proxy;
mod object_store;
mod openid;
pub mod pki;
pub mod pki_operator;
mod private_link;
mod random;
pub mod render;
pub mod resolve_dns;
pub mod run;
pub mod settings;
pub mod sync_global_pullsecret;
pub mod token_minter;
mod tool;

use args::{Cli, Command};

/// Runs a command line.
pub fn run(cli: Cli) -> Result<(), error::Failure> {
    match cli.command {
        Command::Run(args) => Ok(run::run(*args)?),
        Command::Render(args) => Ok(render::run(&args)?),
        Command::AvailabilityProber(args) => Ok(availability_prober::run(&args)?),
        Command::ResolveDns(args) => Ok(resolve_dns::run(&args)?),
        Command::TokenMinter(args) => Ok(token_minter::run(&args)?),
        Command::KasBootstrap(args) => Ok(kas_bootstrap::run(&args)?),
        Command::EtcdDefragController(args) => Ok(etcd_defrag::run(&args)?),
        Command::FetchEtcdCerts(args) => Ok(fetch_etcd_certs::run(&args)?),
        Command::EtcdBackup(args) => Ok(etcd_backup::run(&args)?),
        Command::EtcdUpload(args) => Ok(etcd_upload::run(&args)?),
        Command::IgnitionServer(args) => Ok(ignition_server::run(&args)?),
        Command::HostedClusterConfigOperator(args) => Ok(hosted_cluster_config::run(&args)?),
        Command::KonnectivityHttpsProxy(args) => Ok(konnectivity_https_proxy::run(&args)?),
        Command::KonnectivitySocks5Proxy(args) => Ok(konnectivity_socks5_proxy::run(&args)?),
        Command::KubernetesDefaultProxy(args) => Ok(kubernetes_default_proxy::run(&args)?),
        Command::SyncGlobalPullsecret(args) => Ok(sync_global_pullsecret::run(&args)?),
        Command::SyncFgConfigmap(args) => Ok(feature_gates::run(&args)?),
        Command::EndpointResolver(args) => Ok(endpoint_resolver::run(&args)?),
        Command::MetricsProxy(args) => Ok(metrics_proxy::run(&args)?),
        Command::ControlPlanePkiOperator(args) => Ok(pki_operator::run(&args)?),
        Command::FileExists(args) => Ok(file_exists::run(&args)?),
    }
}
