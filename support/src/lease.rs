//! Leader election by a Lease, with a fencing epoch.
//!
//! One of several replicas holds the lease and renews it; the others watch it and take it over once it has not changed
//! for its whole duration. Each take-over increments `leaseTransitions`, which is the epoch of the new term.
//!
//! ```text
//!   renewal sent             writes stop                lease expires: others take it
//!   |------ renew deadline ------|----- nobody writes ------|
//! ```
//!
//! The holder stops to write at the renew deadline, counted from when its last renewal was *sent*; the others count the
//! longer duration from when they *saw* it. No clock is compared with another machine's.

mod claim;
mod decision;
mod metrics;

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Api;
use kube::api::PostParams;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use crate::error::chain;
use crate::health::Check;
use crate::reconcile::{client_reason, is_conflict, is_missing};
use crate::shutdown::Drain;
pub use claim::{Claim, Term};
use decision::{Move, Seen};
pub use metrics::Metrics;

/// Which lease, who we are, and the times.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Namespace of the lease.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Who we are: different for each process that ever ran.
    pub identity: String,
    /// How long others wait after our last renewal.
    pub duration: Duration,
    /// How long we go on writing after it.
    pub renew_deadline: Duration,
    /// Between two renewals.
    pub retry: Duration,
}

/// A candidate for the lease, and its holder in between.
#[derive(Debug)]
pub struct Elector {
    api: Api<Lease>,
    settings: Settings,
    metrics: Metrics,
    check: Check,
}

/// The lease as we last wrote it.
#[derive(Debug)]
struct Held {
    lease: Lease,
    epoch: i32,
    until: Instant,
}

/// How an attempt to renew ended.
enum Renewal {
    Done,
    Failed,
    Lost,
}

// === impl Settings ===

impl Settings {
    /// Says what is wrong with the times, if anything is.
    pub fn check(&self) -> Result<(), String> {
        if self.duration < Duration::from_secs(1) || self.duration.subsec_nanos() != 0 {
            return Err("the lease's duration has to be a whole number of seconds".to_owned());
        }
        if self.renew_deadline >= self.duration {
            return Err(
                "the renew deadline has to be shorter than the lease's duration".to_owned(),
            );
        }
        if self.retry >= self.renew_deadline {
            return Err("the retry period has to be shorter than the renew deadline".to_owned());
        }
        Ok(())
    }

    /// An identity that no other process has: the pod, and when this process started.
    pub fn identity(pod: &str) -> String {
        format!("{pod}_{:x}", Timestamp::now().as_nanosecond())
    }

    fn spec(&self, epoch: i32, acquired: MicroTime) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: i32::try_from(self.duration.as_secs()).ok(),
            lease_transitions: Some(epoch),
            acquire_time: Some(acquired.clone()),
            renew_time: Some(acquired),
            ..LeaseSpec::default()
        }
    }
}

// === impl Elector ===

impl Elector {
    /// A candidate. The client is not fenced: it takes the lease.
    pub fn new(client: kube::Client, settings: Settings, metrics: Metrics, check: Check) -> Self {
        Self {
            api: Api::namespaced(client, &settings.namespace),
            settings,
            metrics,
            check,
        }
    }

    /// Leads whenever the lease is ours, until the process is to end. `lead` has to end by itself then; it is dropped
    /// when the lease is lost.
    pub async fn run<F>(&self, mut drain: Drain, mut lead: impl FnMut(Claim) -> F)
    where
        F: Future<Output = ()>,
    {
        let mut last = 0;
        while !drain.has_begun() {
            let held = tokio::select! {
                biased;
                () = drain.begun() => return,
                held = self.acquire(&mut last) => held,
            };
            last = held.epoch;
            self.term(held, &mut lead).await;
        }
    }

    /// Leads until the work is done or the lease is lost.
    async fn term<F>(&self, mut held: Held, lead: &mut impl FnMut(Claim) -> F)
    where
        F: Future<Output = ()>,
    {
        let (term, claim) = Term::begin(&self.settings, held.epoch, held.until);
        tracing::info!(lease = self.settings.name, epoch = held.epoch, "Leading");
        self.metrics.begun(held.epoch);
        let done = {
            let work = lead(claim);
            tokio::select! {
                biased;
                () = self.keep(&mut held, &term) => false,
                () = work => true,
            }
        };
        term.end();
        self.metrics.ended();
        if done {
            self.release(held).await;
            return;
        }
        self.metrics.lost();
        tracing::warn!(
            lease = self.settings.name,
            epoch = held.epoch,
            "Leadership lost"
        );
    }

    async fn acquire(&self, last: &mut i32) -> Held {
        let mut seen = None;
        loop {
            let lease = match self.read().await {
                Ok(lease) => lease,
                Err(error) => {
                    self.failed("read", &error);
                    sleep(self.settings.retry).await;
                    continue;
                }
            };
            let now = Instant::now();
            seen = lease.as_ref().map(|lease| Seen::new(lease, seen, now));
            *last = lease
                .as_ref()
                .map_or(*last, |lease| decision::epoch(lease).max(*last));
            match decision::next(seen.as_ref(), *last, &self.settings.identity, now) {
                Move::Wait { expires } => {
                    self.check.pass();
                    sleep_until(expires.min(now + self.look())).await;
                }
                Move::Take { epoch } => match self.take(lease, epoch).await {
                    Ok(held) => return held,
                    // Somebody was quicker.
                    Err(error) if is_conflict(&error) => {}
                    Err(error) => {
                        self.failed("take", &error);
                        sleep(self.settings.retry).await;
                    }
                },
            }
        }
    }

    /// Between two looks at a lease that somebody else holds.
    fn look(&self) -> Duration {
        self.settings.retry / 2
    }

    async fn read(&self) -> kube::Result<Option<Lease>> {
        let deadline = Instant::now() + self.settings.renew_deadline;
        bounded(deadline, self.api.get_opt(&self.settings.name)).await
    }

    async fn take(&self, lease: Option<Lease>, epoch: i32) -> kube::Result<Held> {
        let until = Instant::now() + self.settings.renew_deadline;
        let is_new = lease.is_none();
        let mut lease = lease.unwrap_or_default();
        lease.metadata.name = Some(self.settings.name.clone());
        lease.spec = Some(self.settings.spec(epoch, MicroTime(Timestamp::now())));
        let params = PostParams::default();
        let lease = if is_new {
            bounded(until, self.api.create(&params, &lease)).await?
        } else {
            bounded(
                until,
                self.api.replace(&self.settings.name, &params, &lease),
            )
            .await?
        };
        Ok(Held {
            lease,
            epoch,
            until,
        })
    }

    /// Renews until the lease is lost.
    async fn keep(&self, held: &mut Held, term: &Term) {
        // Who leads has checks of its own, and names them when it begins: nobody is ready between the two.
        tokio::task::yield_now().await;
        self.check.pass();
        loop {
            sleep_until(held.until.min(Instant::now() + self.settings.retry)).await;
            if Instant::now() >= held.until {
                return;
            }
            match self.renew(held).await {
                Renewal::Done => term.extend(held.until),
                Renewal::Failed => {}
                Renewal::Lost => return,
            }
        }
    }

    async fn renew(&self, held: &mut Held) -> Renewal {
        let sent = Instant::now();
        let mut lease = held.lease.clone();
        if let Some(spec) = &mut lease.spec {
            spec.renew_time = Some(MicroTime(Timestamp::now()));
        }
        let name = &self.settings.name;
        let params = PostParams::default();
        match bounded(held.until, self.api.replace(name, &params, &lease)).await {
            Ok(lease) => {
                self.check.pass();
                held.lease = lease;
                held.until = sent + self.settings.renew_deadline;
                Renewal::Done
            }
            Err(error) if is_missing(&error) => Renewal::Lost,
            Err(error) if is_conflict(&error) => self.look_again(held).await,
            Err(error) => {
                self.failed("renew", &error);
                Renewal::Failed
            }
        }
    }

    /// After a conflict: somebody has taken the lease, or has only touched it.
    async fn look_again(&self, held: &mut Held) -> Renewal {
        match bounded(held.until, self.api.get(&self.settings.name)).await {
            Ok(lease) if self.is_ours(&lease, held.epoch) => {
                held.lease = lease;
                Renewal::Failed
            }
            Ok(_) => Renewal::Lost,
            Err(error) => {
                self.failed("read", &error);
                Renewal::Failed
            }
        }
    }

    fn is_ours(&self, lease: &Lease, epoch: i32) -> bool {
        let spec = lease.spec.as_ref();
        let holder = spec.and_then(|spec| spec.holder_identity.as_ref());
        holder == Some(&self.settings.identity) && decision::epoch(lease) == epoch
    }

    /// Gives the lease back, so that the next holder need not wait. The epoch stays in it.
    async fn release(&self, held: Held) {
        let mut lease = held.lease;
        if let Some(spec) = &mut lease.spec {
            spec.holder_identity = None;
        }
        let params = PostParams::default();
        let replaced = self.api.replace(&self.settings.name, &params, &lease);
        match bounded(held.until, replaced).await {
            Ok(_) => tracing::info!(lease = self.settings.name, "Lease released"),
            // It expires by itself.
            Err(error) => self.failed("release", &error),
        }
    }

    fn failed(&self, what: &str, error: &kube::Error) {
        self.metrics.error(client_reason(error));
        let problem = chain(&Failure {
            what,
            source: error,
        });
        tracing::debug!(lease = self.settings.name, problem, "Lease request failed");
        self.check.fail(problem);
    }
}

/// An error with what was attempted.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what} the lease")]
struct Failure<'a> {
    what: &'a str,
    source: &'a kube::Error,
}

/// Gives up at a deadline.
async fn bounded<T>(
    deadline: Instant,
    request: impl Future<Output = kube::Result<T>>,
) -> kube::Result<T> {
    match timeout_at(deadline, request).await {
        Ok(answer) => answer,
        Err(late) => Err(kube::Error::Service(late.into())),
    }
}

#[cfg(test)]
mod tests;
