//! The pipeline of the one hosted control plane of a namespace.
//!
//! ```text
//!  cache ──> dereference ──> plan: infrastructure, certificates, components (pure) ──> apply ──> status
//!    ^          (release)                                                                │
//!    └────────────────────────── watches on all that is owned <──────────────────────────┘
//! ```
//!
//! A pass looks at what the watches have gathered, and writes only what differs. What it writes wakes the next pass, until
//! nothing differs any more.

mod apply;
mod cache;
mod deletion;
mod error;
mod failure;
mod history;
mod pass;
mod release;
mod secrets;
mod status;

use std::time::Duration;

use support::error::chain;
use support::health::Check;
use support::reconcile::{Backoff, Retry};
use support::shutdown::Drain;
use tokio::time::{sleep, timeout};

use crate::settings::Settings;
use apply::Writer;
use cache::Cache;
use failure::Failures;
use release::Reader;

/// Between two passes in which nothing happens, until all is available, and after that.
const REVIEW: (Duration, Duration) = (Duration::from_secs(15), Duration::from_mins(1));
/// Events that come together are one reason for a pass.
const GATHER: Duration = Duration::from_millis(50);

/// The means of a term.
pub(crate) struct Operator {
    pub(crate) settings: Settings,
    pub(crate) namespace: String,
    pub(crate) operate_on: String,
    pub(crate) client: kube::Client,
    pub(crate) releases: payload::Releases,
}

/// Reconciles until the process is to end.
pub(crate) async fn run(operator: Operator, check: &Check, mut drain: Drain) {
    let cache = Cache::new(
        &operator.client,
        &operator.namespace,
        &operator.settings.served_groups,
    );
    let work = async {
        let mut pass = pass::Pass {
            writer: Writer::new(operator.client.clone(), &operator.namespace),
            reader: Reader::new(operator.releases.clone()),
            operator: &operator,
            cache: &cache,
            told: None,
        };
        cache.filled().await;
        check.pass();
        let mut backoff = Backoff::default();
        let mut failures = Failures::new(operator.client.clone());
        loop {
            let pause = match pass.run().await {
                Ok(settled) => {
                    backoff = Backoff::default();
                    failures.over();
                    if settled { REVIEW.1 } else { REVIEW.0 }
                }
                Err(error) => {
                    tracing::warn!(problem = chain(&error), "A pass has failed");
                    let hcp = cache.hosted_control_plane();
                    failures.add(hcp.as_ref(), &error).await;
                    backoff.pause(Retry::Backoff)
                }
            };
            let _ = timeout(pause, cache.changed()).await;
            sleep(GATHER).await;
        }
    };
    tokio::select! {
        () = cache.watch() => {}
        () = work => {}
        () = drain.begun() => {}
    }
}
