//! Readiness: whether the API server accepts the credentials of the proxy. Learned from the requests of clients, and from
//! probes while there are none.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use http::header::ACCEPT;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use tokio::sync::Notify;

use crate::metrics::Metrics;
use crate::upstream::{Authorization, Class, Outbound, Outgoing, Upstream};

/// The path of a probe: cheap, and allowed to every user.
const PROBE: &str = "/version";
/// Timeout for a probe.
const PROBE_TIME: Duration = Duration::from_secs(5);
/// The first backoff after a failure. It doubles up to the interval.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Readiness of the proxy.
#[derive(Debug)]
pub(crate) struct Readiness {
    problem: Problem,
    /// When the API server last responded to a client, in milliseconds since `start`.
    last_response: AtomicU64,
    start: Instant,
    failed: Notify,
    metrics: Arc<Metrics>,
}

/// Why a program is not ready; none while it is ready.
#[derive(Debug)]
pub(crate) struct Problem(RwLock<Option<String>>);

// === impl Problem ===

impl Problem {
    pub(crate) fn new(problem: &str) -> Self {
        Self(RwLock::new(Some(problem.to_owned())))
    }

    pub(crate) fn get(&self) -> Option<String> {
        let current = self.0.read().unwrap_or_else(PoisonError::into_inner);
        current.clone()
    }

    /// Logs a change.
    pub(crate) fn set(&self, problem: Option<String>) {
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if *current == problem {
            return;
        }
        match &problem {
            None => tracing::info!("Ready"),
            Some(problem) => tracing::warn!(problem, "Not ready"),
        }
        *current = problem;
    }

    /// For an expected change.
    fn set_without_log(&self, problem: &str) {
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *current = Some(problem.to_owned());
    }
}

// === impl Readiness ===

impl Readiness {
    /// Not ready yet.
    pub(crate) fn new(metrics: Arc<Metrics>) -> Self {
        Self {
            problem: Problem::new("the API server has not been probed yet"),
            last_response: AtomicU64::new(0),
            start: Instant::now(),
            failed: Notify::new(),
            metrics,
        }
    }

    /// Why the proxy is not ready.
    pub(crate) fn problem(&self) -> Option<String> {
        self.problem.get()
    }

    /// Records that the API server responded to a client.
    pub(crate) fn record_response(&self) {
        self.last_response.store(self.now(), Ordering::Relaxed);
    }

    /// Records that a request failed, which triggers a probe.
    pub(crate) fn record_failure(&self) {
        self.failed.notify_one();
    }

    /// The proxy is shutting down.
    pub(crate) fn shutting_down(&self) {
        self.metrics.ready(false);
        self.problem.set_without_log("the proxy is shutting down");
    }

    /// Probes until dropped.
    pub(crate) async fn run_probes(&self, upstream: &Upstream, interval: Duration) {
        let mut pause = FIRST_PAUSE;
        loop {
            let problem = probe(upstream).await.err();
            let failed = problem.is_some();
            self.set(problem);
            if failed {
                tokio::time::sleep(pause.min(interval)).await;
                pause = (pause * 2).min(interval);
                continue;
            }
            pause = FIRST_PAUSE;
            self.wait_until_stale(interval).await;
        }
    }

    /// Returns when the API server has not responded for an interval, or a request has failed.
    async fn wait_until_stale(&self, interval: Duration) {
        let mut known = self.now();
        loop {
            let age = Duration::from_millis(self.now().saturating_sub(known));
            tokio::select! {
                () = self.failed.notified() => return,
                () = tokio::time::sleep(interval.saturating_sub(age)) => {}
            }
            let responded = self.last_response.load(Ordering::Relaxed);
            if responded <= known {
                return;
            }
            known = responded;
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn set(&self, problem: Option<String>) {
        self.metrics.ready(problem.is_none());
        self.problem.set(problem);
    }
}

async fn probe(upstream: &Upstream) -> Result<(), String> {
    let outbound = Outbound {
        method: Method::GET,
        path: PathAndQuery::from_static(PROBE),
        headers: HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]),
        body: Outgoing::Empty,
        class: Class::Unary,
        authorization: Authorization::Ours,
    };
    let probe = async {
        let mut response = upstream
            .send(outbound)
            .await
            .map_err(|error| support::error::chain(&error))?;
        // Read to the end, so that the connection can be reused.
        while let Some(Ok(_)) = response.body_mut().frame().await {}
        Ok(response.status())
    };
    let responded = tokio::time::timeout(PROBE_TIME, probe).await;
    match responded.unwrap_or_else(|_| Err("the API server does not respond".to_owned()))? {
        StatusCode::UNAUTHORIZED => {
            Err("the API server rejects the credentials of the proxy".to_owned())
        }
        status if status.is_server_error() => Err(format!("the API server responds with {status}")),
        _ => Ok(()),
    }
}
