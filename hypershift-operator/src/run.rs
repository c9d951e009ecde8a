//! `hypershift-operator run`: starts all parts of the operator, and shuts them down gracefully.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::join_all;
use http::HeaderValue;
use http::header::USER_AGENT;
use ownership::Scope;
use payload::Releases;
use prometheus_client::registry::Registry;
use support::admin::{self, Admin};
use support::args::ApiServerArgs;
use support::controller::Manager;
use support::error::chain;
use support::health::Health;
use support::lease::{self, Claim, Elector};
use support::shutdown::{self, Drain, Signals};
use support::{client, fence, telemetry};
use tokio::sync::mpsc;

use crate::args::RunArgs;
use crate::cache;
use crate::config::Config;
use crate::context::Context;
use crate::error::Fatal;
use crate::fleet_metrics::{self, FleetMetrics};
use crate::metrics::{Metrics, PREFIX, ReleaseCache};
use crate::migration::Migrations;
use crate::{
    control, conversion, etcd_backup, migration, node_pool, private_link, resync, startup,
    supported_versions,
};

/// The user agent, which the API server's audit log records.
const PROGRAM: &str = concat!("hypershift-operator/", env!("CARGO_PKG_VERSION"));
/// How long the Lease is held when no client can be created, before another replica can take it.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// What each replica has, leader or not.
struct Operator {
    config: Config,
    kube: kube::Config,
    metrics: Arc<Metrics>,
    migration: Arc<migration::Metrics>,
    fleet_metrics: Arc<FleetMetrics>,
    health: Arc<Health>,
    controllers: Manager,
    releases: Releases,
}

/// Runs until SIGTERM or SIGINT.
pub(crate) fn run(args: &RunArgs) -> Result<(), Fatal> {
    let config = Config::new(args)?;
    telemetry::init(&args.logging, &["hypershift_operator"]);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(Fatal::system("start a runtime"))?;
    runtime.block_on(serve(config, &args.api_server))
}

async fn serve(config: Config, api_server: &ApiServerArgs) -> Result<(), Fatal> {
    let mut signals = Signals::new().map_err(Fatal::system("handle signals"))?;
    let kube = client::config(api_server).await?;
    let mut registry = Registry::default();
    let migration = registry.sub_registry_with_prefix(migration::PREFIX);
    let migration = Arc::new(migration::Metrics::new(migration));
    let fleet_metrics = FleetMetrics::new(&mut registry);
    let own = registry.sub_registry_with_prefix(PREFIX);
    let health = Health::new(own);
    let releases = Releases::new(config.releases.clone()).map_err(Fatal::Releases)?;
    own.register_collector(Box::new(ReleaseCache(releases.clone())));
    let operator = Operator {
        metrics: Metrics::new(own),
        migration,
        fleet_metrics,
        controllers: Manager::new(own, &health),
        health,
        releases,
        kube,
        config,
    };
    let lease_metrics = lease::Metrics::new(own);
    let listener = admin::listen(operator.config.metrics_addr)
        .await
        .map_err(Fatal::Listen)?;
    if let Ok(address) = listener.local_addr() {
        tracing::info!(%address, "Serving probes and metrics");
    }
    let health = Arc::clone(&operator.health);
    let admin = Admin { health, registry };
    tokio::spawn(admin.serve(listener));

    let (signal, drain) = shutdown::channel();
    let mut work = std::pin::pin!(operator.work(lease_metrics, drain));
    tokio::select! {
        ended = &mut work => return ended,
        () = signals.any() => {}
    }
    let _ending = operator.health.check("shutdown", "shutting down");
    signal.begin();
    let Ok(ended) = tokio::time::timeout(operator.config.drain, work).await else {
        tracing::warn!("Shutdown timed out: aborting reconciles in flight");
        return Ok(());
    };
    tracing::info!("Shut down");
    ended
}

/// Watches which namespaces hold objects of which API groups.
async fn observe_groups(ctx: &Context, drain: Drain) {
    let (client, reader) = (&ctx.client, &ctx.observed_groups);
    cache::observed_groups::run(client, reader, &ctx.cache, drain).await;
}

// === impl Operator ===

impl Operator {
    /// Leads while it holds the Lease, until the shutdown begins.
    async fn work(&self, metrics: lease::Metrics, drain: Drain) -> Result<(), Fatal> {
        if !self.config.leader_elect {
            let (_term, claim) = Claim::alone(&self.config.lease);
            self.lead(claim, drain).await;
            return Ok(());
        }
        let mut kube = self.kube.clone();
        let agent = HeaderValue::from_static(PROGRAM);
        kube.headers.push((USER_AGENT, agent));
        let client = client::connect(&kube).map_err(Fatal::Connect)?;
        let check = self
            .health
            .check("lease", "the lease has not been read yet");
        let elector = Elector::new(client, self.config.lease.clone(), metrics, check);
        let until = drain.clone();
        elector
            .run(until, |claim| self.lead(claim, drain.clone()))
            .await;
        Ok(())
    }

    /// One term of leadership. The future is dropped when the Lease is lost.
    async fn lead(&self, claim: Claim, mut drain: Drain) {
        let client = match fence::client(&self.kube, &claim, PROGRAM) {
            Ok(client) => client,
            Err(error) => {
                tracing::error!(error = chain(&error), "Failed to create a client");
                // Another replica may succeed.
                let _ = tokio::time::timeout(RETRY_INTERVAL, drain.begun()).await;
                return;
            }
        };
        let releases = self.releases.clone();
        let (metrics, controllers) = (&self.metrics, &self.controllers);
        let ctx = Context::new(
            &self.config,
            client,
            releases,
            metrics,
            controllers,
            claim.epoch(),
        );
        let ctx = Arc::new(ctx);
        let migrations = Migrations::new(self.config.migration.clone(), &self.migration);
        let scan = self
            .health
            .check("scan", "HostedClusters have not been scanned yet");
        match startup::run(&ctx, &scan, &mut drain).await {
            startup::Outcome::Scanned => {}
            startup::Outcome::Ending => return,
        }
        let watch = self
            .health
            .check("watch", "HostedClusters are not watched yet");
        let pools = self.health.check("pools", "NodePools are not watched yet");
        let (sender, receiver) = mpsc::unbounded_channel();
        let Some(writers) = ctx.cache.take_writers() else {
            return;
        };
        let period = self.config.resync;
        // All loops of a leader.
        let work = [
            control::run(
                Arc::clone(&ctx),
                receiver,
                writers.clusters,
                &watch,
                drain.clone(),
            )
            .boxed_local(),
            resync::run(&ctx, &migrations, sender, period, &scan, drain.clone()).boxed_local(),
            node_pool::run(Arc::clone(&ctx), writers.pools, &pools, drain.clone()).boxed_local(),
            private_link::run(Arc::clone(&ctx), drain.clone()).boxed_local(),
            etcd_backup::run(&ctx, drain.clone()).boxed_local(),
            observe_groups(&ctx, drain.clone()).boxed_local(),
            fleet_metrics::run(&ctx, &self.fleet_metrics, drain.clone()).boxed_local(),
            migration::run(&ctx, &migrations, drain.clone()).boxed_local(),
            self.renew_conversion(&ctx, drain.clone()).boxed_local(),
            self.publish_versions(&ctx, drain.clone()).boxed_local(),
        ];
        join_all(work).await;
    }

    /// Only private CRDs have the conversion webhook.
    async fn renew_conversion(&self, ctx: &Context, drain: Drain) {
        if ctx.scope == Scope::Private {
            let namespace = &self.config.namespace;
            conversion::run(&ctx.client, namespace, &ctx.controllers, drain).await;
        }
    }

    /// One of two operators is enough, and operator-legacy is removed some day.
    async fn publish_versions(&self, ctx: &Context, drain: Drain) {
        if ctx.scope != Scope::Legacy {
            let namespace = &self.config.namespace;
            supported_versions::run(&ctx.client, namespace, &ctx.controllers, drain).await;
        }
    }
}

#[cfg(test)]
mod tests;
