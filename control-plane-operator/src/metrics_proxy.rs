//! `control-plane-operator metrics-proxy`: serves metrics of control plane components to the guest's monitoring.
//!
//! ```text
//! GET /metrics/<component> ──> endpoint resolver: ready pods ──> scrape each ──> filter, label ──> one response
//! ```

mod config;
mod exposition;
mod filter;
mod scrape;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use clap::ValueEnum as _;
use control_plane_component::settings::CollectedMetrics;
use futures::future::join_all;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use support::admin;
use support::args::{Address, LoggingArgs};
use support::error::chain;
use support::shutdown::Drain;

use crate::endpoint_resolver::Target;
use crate::error::Failure;
use crate::https::{self, Handler, Peer, text};
use crate::tool;
use config::{Component, Config};
use exposition::Labels;
use scrape::Resolver;

/// The text format of Prometheus.
const EXPOSITION: HeaderValue =
    HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
const PREFIX: &str = "/metrics/";
/// How long requests may continue after a signal: longer than a scrape, whose timeout is 10 seconds.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);

/// The flags of `metrics-proxy`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Namespace of the control plane.
    #[arg(long, value_name = "NAME", env = "MY_NAMESPACE")]
    pub namespace: String,
    /// Port to serve on.
    #[arg(long, value_name = "PORT", default_value_t = 9443)]
    pub serving_port: u16,
    /// File with the serving certificate, PEM.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/etc/metrics-proxy/serving-cert/tls.crt"
    )]
    pub tls_cert_file: PathBuf,
    /// File with the key of the serving certificate, PEM.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/etc/metrics-proxy/serving-cert/tls.key"
    )]
    pub tls_key_file: PathBuf,
    /// File with the certificate authority of clients, PEM.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/etc/metrics-proxy/client-ca/ca.crt"
    )]
    pub client_ca_file: PathBuf,
    /// Which metrics are served: Telemetry, SRE or All.
    #[arg(long, value_name = "SET", default_value = "All", value_parser = metrics_set)]
    pub metrics_set: CollectedMetrics,
    /// File with the components to scrape, YAML.
    #[arg(long, value_name = "FILE")]
    pub config_file: PathBuf,
    /// Logging flags.
    #[command(flatten, next_help_heading = "Logging")]
    pub logging: LoggingArgs,
}

/// Serves metrics.
struct Proxy {
    config: Config,
    namespace: String,
    set: CollectedMetrics,
    resolver: Resolver,
}

/// A request that cannot be served.
#[derive(Debug, PartialEq, Eq)]
enum Refused {
    /// The client shows no certificate.
    Unauthenticated,
    /// Only GET is served.
    Method,
    /// The path names no component.
    Path,
    /// The component has no metrics here.
    Unknown,
}

fn metrics_set(text: &str) -> Result<CollectedMetrics, String> {
    CollectedMetrics::from_str(text, true)
        .map_err(|_| format!("{text:?} is not Telemetry, SRE or All"))
}

/// Serves until SIGTERM or SIGINT.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let config = Config::read(&args.config_file)?;
    let clients = Some(args.client_ca_file.as_path());
    let tls = https::tls(&args.tls_cert_file, &args.tls_key_file, clients)?;
    let work = |drain| work(args, config, tls, drain);
    tool::serve_within(DRAIN_TIMEOUT, &args.logging, work)
}

async fn work(
    args: &Args,
    config: Config,
    tls: rustls::ServerConfig,
    drain: Drain,
) -> Result<(), Failure> {
    let listener = admin::listen(Address::All(args.serving_port)).await?;
    let proxy = Proxy {
        resolver: Resolver::new(&config.endpoint_resolver)?,
        config,
        namespace: args.namespace.clone(),
        set: args.metrics_set,
    };
    https::serve(listener, tls, Arc::new(proxy), drain).await;
    Ok(())
}

/// Whether a request may be served, and for which component.
fn requested<'a>(
    config: &'a Config,
    method: &Method,
    path: &str,
    peer: Peer,
) -> Result<&'a Component, Refused> {
    if peer == Peer::Unknown {
        return Err(Refused::Unauthenticated);
    }
    if method != Method::GET {
        return Err(Refused::Method);
    }
    let name = path.strip_prefix(PREFIX);
    let name = name.filter(|name| !name.is_empty() && !name.contains('/'));
    let name = name.ok_or(Refused::Path)?;
    config.component(name).ok_or(Refused::Unknown)
}

// === impl Proxy ===

impl Handler for Proxy {
    async fn respond(&self, request: Request<Bytes>, peer: Peer) -> Response<Full<Bytes>> {
        let path = request.uri().path();
        if path == "/healthz" {
            return text(StatusCode::OK, "ok\n");
        }
        if !path.starts_with("/metrics") {
            return text(
                StatusCode::NOT_FOUND,
                "not found: use /metrics/<component>\n",
            );
        }
        match requested(&self.config, request.method(), path, peer) {
            Ok(component) => self.metrics(component).await,
            Err(refused) => refused.response(),
        }
    }
}

impl Proxy {
    async fn metrics(&self, component: &Component) -> Response<Full<Bytes>> {
        let pods = match self.resolver.pods(&component.selector).await {
            Ok(pods) => pods,
            Err(error) => {
                let component = &component.name;
                tracing::warn!(component, problem = chain(&error), "Failed to resolve pods");
                let problem = "failed to resolve the component's pods\n";
                return text(StatusCode::INTERNAL_SERVER_ERROR, problem);
            }
        };
        let scrapes = pods
            .iter()
            .map(async |pod| (pod, scrape::pod(component, pod).await));
        let results = join_all(scrapes).await;
        let failed = results.iter().filter(|(_, result)| result.is_err()).count();
        if failed > 0 && failed == results.len() {
            let problem = "failed to scrape all pods of the component\n";
            return text(StatusCode::BAD_GATEWAY, problem);
        }
        let mut body = String::new();
        for (pod, result) in results {
            match result {
                Ok(metrics) => self.emit(component, pod, &metrics, &mut body),
                Err(error) => {
                    let (component, pod) = (&component.name, &pod.name);
                    tracing::warn!(component, pod, problem = chain(&error), "Failed to scrape");
                    exposition::scrape_failed(component, pod, &mut body);
                }
            }
        }
        admin::response(StatusCode::OK, EXPOSITION, body)
    }

    /// Adds the metrics of a pod, filtered and with labels.
    fn emit(&self, component: &Component, pod: &Target, metrics: &str, body: &mut String) {
        let labels = Labels::of(component, pod, &self.namespace);
        let keeps = filter::of(self.set, &component.name);
        exposition::rewrite(metrics, |name| keeps.keeps(name), &labels, body);
    }
}

// === impl Refused ===

impl Refused {
    fn response(self) -> Response<Full<Bytes>> {
        match self {
            Self::Unauthenticated => text(
                StatusCode::UNAUTHORIZED,
                "a client certificate is required\n",
            ),
            Self::Method => text(StatusCode::METHOD_NOT_ALLOWED, "only GET is allowed\n"),
            Self::Path => text(StatusCode::BAD_REQUEST, "use /metrics/<component>\n"),
            Self::Unknown => text(StatusCode::NOT_FOUND, "no such component\n"),
        }
    }
}

#[cfg(test)]
mod forwarding;
#[cfg(test)]
mod tests;
