//! Whether the API server can be reached with the proxy's credentials: learned from what clients ask, and asked for when
//! they ask nothing.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use http::header::ACCEPT;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use tokio::sync::Notify;

use crate::metrics::Metrics;
use crate::upstream::{Authorization, Class, Outbound, Outgoing, Upstream};

/// What is asked for: cheap, and allowed to everyone.
const PROBE: &str = "/version";
/// How long an answer may take.
const PROBE_TIME: Duration = Duration::from_secs(5);
/// The first pause after a failure; each further one is twice as long, up to the interval.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Whether the proxy is of use.
#[derive(Debug)]
pub(crate) struct Readiness {
    problem: Problem,
    /// When the API server last answered a client, in milliseconds since `start`.
    heard: AtomicU64,
    start: Instant,
    doubt: Notify,
    metrics: Arc<Metrics>,
}

/// Why a program is of no use; nothing while it is of use.
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

    /// Logs what has changed.
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

    /// Says nothing: it is meant to be so.
    fn set_quietly(&self, problem: &str) {
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *current = Some(problem.to_owned());
    }
}

// === impl Readiness ===

impl Readiness {
    /// Not ready yet.
    pub(crate) fn new(metrics: Arc<Metrics>) -> Self {
        Self {
            problem: Problem::new("the API server has not been asked yet"),
            heard: AtomicU64::new(0),
            start: Instant::now(),
            doubt: Notify::new(),
            metrics,
        }
    }

    /// Why the proxy is not ready.
    pub(crate) fn problem(&self) -> Option<String> {
        self.problem.get()
    }

    /// The API server has answered a client.
    pub(crate) fn heard(&self) {
        self.heard.store(self.now(), Ordering::Relaxed);
    }

    /// A client's request has failed: the API server is asked at once.
    pub(crate) fn doubted(&self) {
        self.doubt.notify_one();
    }

    /// The proxy is ending.
    pub(crate) fn ending(&self) {
        self.metrics.ready(false);
        self.problem.set_quietly("the proxy is ending");
    }

    /// Keeps asking, until dropped.
    pub(crate) async fn keep_asking(&self, upstream: &Upstream, interval: Duration) {
        let mut pause = FIRST_PAUSE;
        loop {
            let problem = ask(upstream).await.err();
            let failed = problem.is_some();
            self.set(problem);
            if failed {
                tokio::time::sleep(pause.min(interval)).await;
                pause = (pause * 2).min(interval);
                continue;
            }
            pause = FIRST_PAUSE;
            self.until_unknown(interval).await;
        }
    }

    /// Returns when the API server has not answered for an interval, or a request has failed.
    async fn until_unknown(&self, interval: Duration) {
        let mut known = self.now();
        loop {
            let age = Duration::from_millis(self.now().saturating_sub(known));
            tokio::select! {
                () = self.doubt.notified() => return,
                () = tokio::time::sleep(interval.saturating_sub(age)) => {}
            }
            let heard = self.heard.load(Ordering::Relaxed);
            if heard <= known {
                return;
            }
            known = heard;
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

async fn ask(upstream: &Upstream) -> Result<(), String> {
    let outbound = Outbound {
        method: Method::GET,
        path: PathAndQuery::from_static(PROBE),
        headers: HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]),
        body: Outgoing::Empty,
        class: Class::Unary,
        authorization: Authorization::Ours,
    };
    let asked = async {
        let mut response = upstream
            .send(outbound)
            .await
            .map_err(|error| support::error::chain(&error))?;
        // To the end, so that the connection can be used again.
        while let Some(Ok(_)) = response.body_mut().frame().await {}
        Ok(response.status())
    };
    let answered = tokio::time::timeout(PROBE_TIME, asked).await;
    match answered.unwrap_or_else(|_| Err("the API server does not answer".to_owned()))? {
        StatusCode::UNAUTHORIZED => Err("the API server refuses our credentials".to_owned()),
        status if status.is_server_error() => Err(format!("the API server answers {status}")),
        _ => Ok(()),
    }
}
