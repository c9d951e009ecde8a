//! `control-plane-operator kas-bootstrap`: applies bootstrap manifests to a new API server.
//!
//! It runs in the API server's pod. As administrator it only creates the `ClusterRoleBindings` of its own account and of
//! the hosted-cluster-config-operator. With its own account it applies the manifests of the payload's renderers. Then
//! it sleeps until SIGTERM, because a container that exits would be restarted.

mod feature_gates;
mod manifests;
mod rbac;

use std::path::{Path, PathBuf};
use std::time::Duration;

use http::Request;
use support::apply::Applier;
use support::args::{ApiServerArgs, LoggingArgs};
use support::error::chain;
use support::reconcile::{Backoff, Retry};

use crate::error::Failure;
use crate::tool::{self, LogFilter};
use manifests::Manifest;

/// Field manager.
const MANAGER: &str = "kas-bootstrap";
/// Polling interval while the API server starts.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The flags of `kas-bootstrap`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Directory with manifests to apply, read recursively.
    #[arg(long, value_name = "DIR")]
    pub resources_path: PathBuf,
    /// Kubeconfig of this program's own account.
    #[arg(long, value_name = "FILE", env = "KUBECONFIG")]
    pub kubeconfig: PathBuf,
    /// Kubeconfig of an administrator, to grant permissions to that account. If it is not set, they must exist already.
    #[arg(long, value_name = "FILE", env = "KUBECONFIG_ADMIN")]
    pub admin_kubeconfig: Option<PathBuf>,
    /// Logging flags.
    #[command(flatten, next_help_heading = "Logging")]
    pub logging: LoggingArgs,
}

/// Applies the manifests, then waits.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let manifests = manifests::read(&args.resources_path)?;
    tool::run(&args.logging, bootstrap(args, manifests))
}

async fn bootstrap(args: &Args, manifests: Vec<Manifest>) -> Result<(), Failure> {
    if let Some(admin) = &args.admin_kubeconfig {
        let applier = Applier::new(client(admin).await?, MANAGER);
        wait_for_the_server(applier.client()).await;
        apply_until_successful(&rbac::manifests(), &applier).await;
    }
    let applier = Applier::new(client(&args.kubeconfig).await?, MANAGER);
    wait_for_the_server(applier.client()).await;
    apply_until_successful(&manifests, &applier).await;
    tracing::info!(manifests = manifests.len(), "Bootstrapped");
    std::future::pending().await
}

async fn client(kubeconfig: &Path) -> Result<kube::Client, Failure> {
    let args = ApiServerArgs {
        kubeconfig: Some(kubeconfig.to_owned()),
        context: None,
    };
    let config = support::client::config(&args).await?;
    Ok(support::client::connect(&config)?)
}

async fn wait_for_the_server(client: &kube::Client) {
    let mut filter = LogFilter::default();
    while let Err(error) = is_ready(client).await {
        let error = describe(&error);
        if filter.is_new(&error) {
            tracing::info!(error, "Waiting for the API server");
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Describes why the API server is not ready. The response body is not logged, because it lists internal checks.
fn describe(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => format!("HTTP status {}", status.code),
        other => chain(other),
    }
}

async fn is_ready(client: &kube::Client) -> kube::Result<()> {
    let request = Request::get("/readyz").body(Vec::new());
    let request = request.map_err(kube::Error::HttpError)?;
    client.request_text(request).await.map(drop)
}

/// Applies manifests with retries, because CRDs must be served before their objects can be applied.
async fn apply_until_successful(manifests: &[Manifest], applier: &Applier) {
    let mut backoff = Backoff::default();
    let mut filter = LogFilter::default();
    let mut left: Vec<_> = manifests.iter().collect();
    loop {
        let mut failed = Vec::new();
        for manifest in left {
            if let Err(error) = manifest.apply(applier).await {
                failed.push((manifest, chain(&error)));
            }
        }
        let Some((first, error)) = failed.first() else {
            return;
        };
        if filter.is_new(error) {
            let (manifest, left) = (first.to_string(), failed.len());
            tracing::warn!(manifest, error, left, "Failed to apply manifests, retrying");
        }
        left = failed.into_iter().map(|(manifest, _)| manifest).collect();
        tokio::time::sleep(backoff.pause(Retry::Backoff)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check S16.
    #[test]
    fn response_bodies_are_not_logged() {
        let body = "[-]etcd failed: token abc";
        let status = kube::core::Status::failure(body, "").with_code(500);
        let error = kube::Error::Api(Box::new(status));
        assert_eq!(describe(&error), "HTTP status 500");
    }
}
