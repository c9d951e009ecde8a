//! `capi-proxy serve`: startup and graceful shutdown.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use support::admin::Endpoints;
use support::shutdown::{self, Drain, Signals};
use support::{admin, telemetry};

use crate::args::ServeArgs;
use crate::config::Config;
use crate::credentials::Store;
use crate::error::Error;
use crate::listen::{self, Listener};
use crate::metrics::Metrics;
use crate::readiness::Readiness;
use crate::server::{self, Workers};
use crate::stack::Proxy;
use crate::upstream::{self, Upstream};

/// Responses to probes and scrapes.
struct Probes {
    readiness: Arc<Readiness>,
    metrics: Arc<Metrics>,
}

/// Serves until a signal arrives.
pub(crate) fn run(args: &ServeArgs) -> Result<(), Error> {
    let config = Config::new(args)?;
    telemetry::init(&args.logging.shared(), &[]);
    raise_file_limit();
    let runtime = server::runtime().map_err(Error::system("start a runtime"))?;
    runtime.block_on(serve(config))
}

async fn serve(config: Config) -> Result<(), Error> {
    let mut signals = Signals::new().map_err(Error::system("handle signals"))?;
    let metrics = Metrics::new();
    let readiness = Arc::new(Readiness::new(Arc::clone(&metrics)));
    let store = Arc::new(Store::new(config.source.clone()));
    let (signal, drain) = shutdown::channel();

    let listeners = listen::open(&config.listeners).await?;
    let admin = listen::tcp(config.admin).await?;
    let admin_address = admin.local_addr().unwrap_or(config.admin);
    if let Some(path) = &config.address_file {
        listen::write_address_file(path, &listeners, admin_address)?;
    }
    report(&listeners, &admin_address);

    let drain_timeout = config.drain_timeout;
    let probing = tokio::spawn(probe(
        config.upstream_limits,
        config.probe_interval,
        &store,
        &readiness,
    ));
    let workers = start_workers(config, &store, &metrics, &readiness, drain.clone())?;
    let fresh = Arc::clone(&store);
    tokio::spawn(async move { fresh.watch_files().await });
    let probes = Probes {
        readiness: Arc::clone(&readiness),
        metrics,
    };
    tokio::spawn(admin::serve(probes, admin));
    for listener in listeners {
        tokio::spawn(Arc::clone(&workers).accept(listener, drain.clone()));
    }
    drop((drain, workers));

    signals.any().await;
    probing.abort();
    readiness.shutting_down();
    signal.begin();
    if tokio::time::timeout(drain_timeout, signal.all_ended())
        .await
        .is_err()
    {
        tracing::warn!("Aborting requests that exceed the drain timeout");
    }
    tracing::info!("Stopped");
    Ok(())
}

/// Probes the API server, on separate connections.
fn probe(
    limits: upstream::Limits,
    interval: Duration,
    store: &Arc<Store>,
    readiness: &Arc<Readiness>,
) -> impl Future<Output = ()> + Send + 'static {
    let upstream = Upstream::new(Arc::clone(store), limits);
    let readiness = Arc::clone(readiness);
    async move { readiness.run_probes(&upstream, interval).await }
}

fn start_workers(
    config: Config,
    store: &Arc<Store>,
    metrics: &Arc<Metrics>,
    readiness: &Arc<Readiness>,
    drain: Drain,
) -> Result<Arc<Workers>, Error> {
    let (store, metrics, readiness) = (
        Arc::clone(store),
        Arc::clone(metrics),
        Arc::clone(readiness),
    );
    let Config {
        rules,
        policy,
        upstream_limits,
        client_limits,
        threads,
        ..
    } = config;
    let policy = Arc::new(policy);
    let make = move || Proxy {
        rules: rules.clone(),
        policy: Arc::clone(&policy),
        upstream: Upstream::new(Arc::clone(&store), upstream_limits),
        metrics: Arc::clone(&metrics),
        readiness: Arc::clone(&readiness),
        drain: drain.clone(),
    };
    Workers::start(threads, client_limits, make).map(Arc::new)
}

fn report(listeners: &[Listener], admin: &SocketAddr) {
    for listener in listeners {
        tracing::info!(address = %listener, "Serving clients");
    }
    tracing::info!(address = %admin, "Serving probes and metrics");
}

/// Raises the limit of open files: each connection needs one or two, and 1024 do not suffice. Go programs do the same.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current < limit.maximum {
        let raised = Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            tracing::debug!(%error, "Failed to raise the limit of open files");
        }
    }
}

// === impl Probes ===

impl Endpoints for Probes {
    fn readiness(&self) -> Vec<String> {
        self.readiness.problem().into_iter().collect()
    }

    fn metrics(&self) -> String {
        self.metrics.render()
    }
}
