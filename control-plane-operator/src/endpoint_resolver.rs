//! `control-plane-operator endpoint-resolver`: answers which pods have certain labels.
//!
//! The metrics proxy, which the guest reaches, asks it instead of the management cluster's API server.

mod resolve;

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt as _;
use http::{Request, Response};
use http_body_util::Full;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::runtime::reflector::{self, Store};
use kube::runtime::{WatchStreamExt as _, watcher};
use support::admin;
use support::args::{Address, ApiServerArgs, LoggingArgs};
use support::error::chain;
use support::shutdown::Drain;

use crate::error::Failure;
use crate::https::{self, Handler, Peer};
use crate::tool;
pub(crate) use resolve::{Answer, Question, Target};

/// The flags of `endpoint-resolver`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Namespace of the pods.
    #[arg(long, value_name = "NAME", env = "MY_NAMESPACE")]
    pub namespace: String,
    /// Port to serve on.
    #[arg(long, value_name = "PORT", default_value_t = 9444)]
    pub serving_port: u16,
    /// File with the serving certificate, PEM.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/etc/endpoint-resolver/serving-cert/tls.crt"
    )]
    pub tls_cert_file: PathBuf,
    /// File with the key of the serving certificate, PEM.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/etc/endpoint-resolver/serving-cert/tls.key"
    )]
    pub tls_key_file: PathBuf,
    /// API server flags.
    #[command(flatten, next_help_heading = "API server")]
    pub api_server: ApiServerArgs,
    /// Logging flags.
    #[command(flatten, next_help_heading = "Logging")]
    pub logging: LoggingArgs,
}

/// The pods of the namespace.
struct Pods(Store<Pod>);

/// Serves until SIGTERM or SIGINT.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let tls = https::tls(&args.tls_cert_file, &args.tls_key_file, None)?;
    tool::serve(&args.logging, |drain| work(args, tls, drain))
}

async fn work(args: &Args, tls: rustls::ServerConfig, drain: Drain) -> Result<(), Failure> {
    let client = support::client::connect(&support::client::config(&args.api_server).await?)?;
    let listener = admin::listen(Address::All(args.serving_port)).await?;
    let (store, writer) = reflector::store();
    let pods = Arc::new(Pods(store));
    tokio::select! {
        () = watch(Api::namespaced(client, &args.namespace), writer) => {}
        () = https::serve(listener, tls, pods, drain) => {}
    }
    Ok(())
}

/// Watches pods; errors are retried.
async fn watch(pods: Api<Pod>, writer: reflector::store::Writer<Pod>) {
    let events = watcher(pods, watcher::Config::default());
    // Only labels and status are read.
    let events = events.modify(|pod| {
        pod.spec = None;
        pod.metadata.managed_fields = None;
        pod.metadata.annotations = None;
    });
    let events = reflector::reflector(writer, events).default_backoff();
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        if let Err(error) = event {
            tracing::warn!(problem = chain(&error), "Failed to watch pods");
        }
    }
}

// === impl Pods ===

impl Handler for Pods {
    async fn respond(&self, request: Request<Bytes>, _: Peer) -> Response<Full<Bytes>> {
        // A store that was never filled has no pods, and that would be a wrong answer.
        let is_listed = futures::FutureExt::now_or_never(self.0.wait_until_ready());
        let pods = matches!(is_listed, Some(Ok(()))).then(|| self.0.state());
        resolve::answer(&request, pods.as_deref())
    }
}

/// A resolver that knows these pods.
#[cfg(test)]
pub(crate) fn of_pods(pods: Vec<Pod>) -> impl Handler {
    let (store, mut writer) = reflector::store();
    writer.apply_watcher_event(&watcher::Event::Init);
    for pod in pods {
        writer.apply_watcher_event(&watcher::Event::InitApply(pod));
    }
    writer.apply_watcher_event(&watcher::Event::InitDone);
    Pods(store)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use crate::args::{Cli, Command};

    #[test]
    fn component_command_line_is_accepted() {
        let args = [
            "control-plane-operator",
            "endpoint-resolver",
            "--namespace=clusters-dev",
            "--tls-cert-file",
            "/etc/endpoint-resolver/serving-cert/tls.crt",
        ];
        let Command::EndpointResolver(args) = Cli::try_parse_from(args).unwrap().command else {
            panic!("another subcommand");
        };
        assert_eq!(args.serving_port, 9444);
        let key = "/etc/endpoint-resolver/serving-cert/tls.key";
        assert_eq!(args.tls_key_file.to_str(), Some(key));
    }
}
