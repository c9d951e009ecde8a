//! `control-plane-operator kas-bootstrap`: gives a fresh API server what must be there before anything else can work.
//!
//! It runs beside the API server. As administrator it only binds the rights of the two accounts that come next: its own,
//! and that of the hosted-cluster-config-operator. As itself it applies what the payload's renderers have left. Then it
//! waits for its end, because a container that ends is started again.

mod manifests;
mod rights;

use std::path::{Path, PathBuf};
use std::time::Duration;

use http::Request;
use support::apply::Applier;
use support::args::{ApiServerArgs, LoggingArgs};
use support::error::chain;
use support::reconcile::{Backoff, Retry};

use crate::error::Failure;
use crate::tool::{self, Once};
use manifests::Manifest;

/// Who applies, as the API server keeps it.
const MANAGER: &str = "kas-bootstrap";
/// Between two looks at an API server that is starting.
const LOOK: Duration = Duration::from_secs(1);

/// The flags of `kas-bootstrap`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Directory with the manifests to apply; looked through with all below it.
    #[arg(long, value_name = "DIR")]
    pub resources_path: PathBuf,
    /// Kubeconfig of this program's own account.
    #[arg(long, value_name = "FILE", env = "KUBECONFIG")]
    pub kubeconfig: PathBuf,
    /// Kubeconfig of an administrator, for the rights of that account. Without it they have to be there.
    #[arg(long, value_name = "FILE", env = "KUBECONFIG_ADMIN")]
    pub admin_kubeconfig: Option<PathBuf>,
    /// What is logged.
    #[command(flatten, next_help_heading = "Logging")]
    pub logging: LoggingArgs,
}

/// Applies, then waits.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let manifests = manifests::read(&args.resources_path)?;
    tool::run(&args.logging, bootstrap(args, manifests))
}

async fn bootstrap(args: &Args, manifests: Vec<Manifest>) -> Result<(), Failure> {
    if let Some(admin) = &args.admin_kubeconfig {
        let applier = Applier::new(client(admin).await?, MANAGER);
        wait_for_the_server(applier.client()).await;
        until_applied(&rights::manifests(), &applier).await;
    }
    let applier = Applier::new(client(&args.kubeconfig).await?, MANAGER);
    wait_for_the_server(applier.client()).await;
    until_applied(&manifests, &applier).await;
    tracing::info!(manifests = manifests.len(), "Bootstrapped");
    std::future::pending().await
}

async fn client(kubeconfig: &Path) -> Result<kube::Client, Failure> {
    let args = ApiServerArgs {
        kubeconfig: Some(kubeconfig.to_owned()),
        context: None,
    };
    let config = support::client::config(&args).await?;
    Ok(support::client::connect(config)?)
}

async fn wait_for_the_server(client: &kube::Client) {
    let mut once = Once::default();
    while let Err(error) = is_ready(client).await {
        let problem = problem(&error);
        if once.is_news(&problem) {
            tracing::info!(problem, "Waiting for the API server");
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Why the API server is not ready. What it answers beside the code is a list of its checks, and no text for a log.
fn problem(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => format!("it answers {}", status.code),
        other => chain(other),
    }
}

async fn is_ready(client: &kube::Client) -> kube::Result<()> {
    let request = Request::get("/readyz").body(Vec::new());
    let request = request.map_err(kube::Error::HttpError)?;
    client.request_text(request).await.map(drop)
}

/// Objects may need others: a kind needs its definition, and a moment for it to be served.
async fn until_applied(manifests: &[Manifest], applier: &Applier) {
    let mut backoff = Backoff::default();
    let mut once = Once::default();
    let mut left: Vec<_> = manifests.iter().collect();
    loop {
        let mut failed = Vec::new();
        for manifest in left {
            if let Err(error) = manifest.apply(applier).await {
                failed.push((manifest, chain(&error)));
            }
        }
        let Some((first, problem)) = failed.first() else {
            return;
        };
        if once.is_news(problem) {
            let (manifest, left) = (first.to_string(), failed.len());
            tracing::warn!(manifest, problem, left, "Not everything is applied yet");
        }
        left = failed.into_iter().map(|(manifest, _)| manifest).collect();
        tokio::time::sleep(backoff.pause(Retry::Backoff)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s16_what_the_server_answers_is_not_logged() {
        let body = "[-]etcd failed: token abc";
        let status = kube::core::Status::failure(body, "").with_code(500);
        let error = kube::Error::Api(Box::new(status));
        assert_eq!(problem(&error), "it answers 500");
    }
}
