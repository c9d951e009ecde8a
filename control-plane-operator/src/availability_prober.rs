//! `control-plane-operator availability-prober`: delays the start of a pod until the hosted API server is available.
//!
//! It is an init container, because components would otherwise crash and restart with exponential backoff.

mod check;

use std::path::PathBuf;
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use support::args::{LoggingArgs, Time};
use support::error::chain;

use crate::error::Failure;
use crate::tool::{self, LogFilter};
use check::{Check, LabeledPods, RequiredApi};

/// Timeout of one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// The flags of `availability-prober`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// URL that must respond with a 2xx status. Its certificate is not verified, because no credentials are sent.
    #[arg(long, value_name = "URL")]
    pub target: http::Uri,
    /// Kubeconfig of the hosted cluster, for the checks below.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Kind that must be served. May be repeated.
    #[arg(long, value_name = "GROUP,VERSION,KIND", requires = "kubeconfig")]
    pub required_api: Vec<RequiredApi>,
    /// Wait for the Infrastructure `cluster`.
    #[arg(long, requires = "kubeconfig")]
    pub wait_for_infrastructure_resource: bool,
    /// Wait until no pod with this label is left. May be repeated.
    #[arg(long, value_name = "NAMESPACE/KEY=VALUE", requires = "kubeconfig")]
    pub wait_for_labeled_pods_gone: Vec<LabeledPods>,
    /// Wait for this ClusterRoleBinding.
    #[arg(long, value_name = "NAME", requires = "kubeconfig")]
    pub wait_for_cluster_rolebinding: Option<String>,
    /// Polling interval.
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub period: Time,
    /// Logging flags.
    #[command(flatten, next_help_heading = "Logging")]
    pub logging: LoggingArgs,
}

/// Waits until all checks pass.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    tool::run(&args.logging, probe(args))
}

async fn probe(args: &Args) -> Result<(), kube::Error> {
    let target = target(&args.target)?;
    let mut filter = LogFilter::default();
    let path = path(&args.target);
    while let Err(error) = with_timeout(check::probe_url(&target, &path)).await {
        log_waiting(&mut filter, "target", &error);
        tokio::time::sleep(args.period.0).await;
    }
    let mut guest = None;
    for check in checks(args) {
        loop {
            match run_check(args, &mut guest, &check).await {
                Ok(()) => break,
                Err(error) => log_waiting(&mut filter, &check.to_string(), &error),
            }
            tokio::time::sleep(args.period.0).await;
        }
    }
    tracing::info!("All checks passed");
    Ok(())
}

fn log_waiting(filter: &mut LogFilter, what: &str, error: &str) {
    if filter.is_new(&format!("{what}{error}")) {
        tracing::info!(what, error, "Waiting");
    }
}

fn checks(args: &Args) -> Vec<Check> {
    let apis = args.required_api.iter().cloned().map(Check::Api);
    let infrastructure = args
        .wait_for_infrastructure_resource
        .then_some(Check::Infrastructure);
    let pods = args.wait_for_labeled_pods_gone.iter().cloned();
    let binding = args.wait_for_cluster_rolebinding.clone();
    apis.chain(infrastructure)
        .chain(pods.map(Check::PodsGone))
        .chain(binding.map(Check::ClusterRoleBinding))
        .collect()
}

/// Runs a check. The kubeconfig is read on demand, because it may not exist yet.
async fn run_check(
    args: &Args,
    guest: &mut Option<kube::Client>,
    check: &Check,
) -> Result<(), String> {
    let client = match guest {
        Some(client) => client.clone(),
        None => guest.insert(self::guest(args).await?).clone(),
    };
    with_timeout(check.run(&client)).await
}

/// Requests to a terminated server would hang for minutes.
async fn with_timeout(response: impl Future<Output = Result<(), String>>) -> Result<(), String> {
    match tokio::time::timeout(REQUEST_TIMEOUT, response).await {
        Ok(response) => response,
        Err(_) => Err("timed out".to_owned()),
    }
}

async fn guest(args: &Args) -> Result<kube::Client, String> {
    let path = args.kubeconfig.clone().unwrap_or_default();
    let unusable = |error: &dyn std::error::Error| {
        format!(
            "failed to use kubeconfig {}: {}",
            path.display(),
            chain(error)
        )
    };
    let kubeconfig = Kubeconfig::read_from(&path).map_err(|error| unusable(&error))?;
    let options = KubeConfigOptions::default();
    let mut config = support::client::from_kubeconfig(kubeconfig, &options)
        .await
        .map_err(|error| unusable(&error))?;
    config.connect_timeout = Some(REQUEST_TIMEOUT);
    support::client::connect(&config).map_err(|error| unusable(&error))
}

fn target(uri: &http::Uri) -> Result<kube::Client, kube::Error> {
    let mut config = kube::Config::new(server(uri)?);
    config.accept_invalid_certs = true;
    config.connect_timeout = Some(REQUEST_TIMEOUT);
    support::client::connect(&config)
}

/// The URL without its path, because the client appends request paths to it.
fn server(uri: &http::Uri) -> Result<http::Uri, kube::Error> {
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(http::uri::PathAndQuery::from_static("/"));
    http::Uri::from_parts(parts).map_err(|error| kube::Error::HttpError(error.into()))
}

fn path(uri: &http::Uri) -> String {
    uri.path_and_query()
        .map_or_else(|| "/".to_owned(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    fn parse(args: &[&str]) -> Result<Args, clap::Error> {
        let begin = ["control-plane-operator", "availability-prober"];
        match Cli::try_parse_from(begin.iter().chain(args))?.command {
            Command::AvailabilityProber(args) => Ok(*args),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn component_command_lines_are_accepted() {
        let target = ["--target", "https://kube-apiserver:6443/readyz"];
        assert!(checks(&parse(&target).unwrap()).is_empty());
        let args = [
            target[0],
            target[1],
            "--kubeconfig=/var/kubeconfig/kubeconfig",
            "--required-api=operator.openshift.io,v1,Network",
            "--required-api=network.operator.openshift.io,v1,EgressRouter",
            "--wait-for-infrastructure-resource",
            "--wait-for-labeled-pods-gone=openshift-dns-operator/name=dns-operator",
            "--wait-for-cluster-rolebinding=cluster-network-operator",
        ];
        let args = parse(&args).unwrap();
        assert_eq!(checks(&args).len(), 5);
        assert_eq!(path(&args.target), "/readyz");
    }

    #[test]
    fn request_path_is_not_duplicated() {
        let uri = http::Uri::from_static("https://kube-apiserver:6443/readyz");
        assert_eq!(server(&uri).unwrap(), "https://kube-apiserver:6443/");
        assert_eq!(path(&uri), "/readyz");
    }

    #[test]
    fn cluster_checks_require_a_kubeconfig() {
        let args = ["--target=https://a/readyz", "--required-api=a.b,v1,C"];
        assert!(parse(&args).is_err());
    }
}
