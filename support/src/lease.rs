//! Leader election by a Lease, with a fencing epoch.
//!
//! One of several replicas holds the lease and renews it. The others take it over when it has not changed for its whole
//! duration. Each take-over increments `leaseTransitions`, which is the fencing epoch of the new term.
//!
//! ```text
//!   renewal sent             writes stop                lease expires: others take it
//!   |------ renew deadline ------|------- no writes --------|
//! ```
//!
//! The holder stops writing at the renew deadline, counted from when its last renewal was *sent*. The others count the
//! longer duration from when they *saw* it. Clocks of different machines are never compared.

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

/// Writes that release a lease before it is left to expire.
const RELEASE_ATTEMPTS: usize = 3;

/// The lease, the identity of this process, and the durations.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Namespace of the lease.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The identity of this process, unique among all processes.
    pub identity: String,
    /// Time after the last renewal until others take over.
    pub duration: Duration,
    /// Time after the last renewal until this process stops writing.
    pub renew_deadline: Duration,
    /// Time between two renewals.
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

/// The lease as it was last written.
#[derive(Debug)]
struct Held {
    lease: Lease,
    epoch: i32,
    until: Instant,
}

/// The result of a renewal.
enum Renewal {
    Done,
    Failed,
    Lost,
}

// === impl Settings ===

impl Settings {
    /// Validates the durations.
    pub fn check(&self) -> Result<(), String> {
        if self.duration < Duration::from_secs(1) || self.duration.subsec_nanos() != 0 {
            return Err("the lease duration must be a whole number of seconds".to_owned());
        }
        if self.renew_deadline >= self.duration {
            return Err("the renew deadline must be shorter than the lease duration".to_owned());
        }
        if self.retry >= self.renew_deadline {
            return Err("the retry period must be shorter than the renew deadline".to_owned());
        }
        Ok(())
    }

    /// A unique identity: the pod, and when this process started.
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
    /// A candidate. Its client is not fenced, because it takes the lease.
    pub fn new(client: kube::Client, settings: Settings, metrics: Metrics, check: Check) -> Self {
        Self {
            api: Api::namespaced(client, &settings.namespace),
            settings,
            metrics,
            check,
        }
    }

    /// Leads while this process holds the lease, until the shutdown begins. `lead` must end by itself then; it is dropped
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

    /// Leads until `lead` ends or the lease is lost.
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
                    sleep_until(expires.min(now + self.poll_interval())).await;
                }
                Move::Take { epoch } => match self.take(lease, epoch).await {
                    Ok(held) => return held,
                    // Another replica was faster.
                    Err(error) if is_conflict(&error) => {}
                    Err(error) => {
                        self.failed("take", &error);
                        sleep(self.settings.retry).await;
                    }
                },
            }
        }
    }

    /// Time between two reads of a lease that another replica holds.
    fn poll_interval(&self) -> Duration {
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
        // The leader adds its own checks first, so that it is not ready in between.
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
            Err(error) if is_conflict(&error) => self.read_again(held).await,
            Err(error) => {
                self.failed("renew", &error);
                Renewal::Failed
            }
        }
    }

    /// After a conflict: another replica has taken the lease, or something else of it has changed.
    async fn read_again(&self, held: &mut Held) -> Renewal {
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

    /// Releases the lease, so that the next holder does not wait. The epoch is kept.
    ///
    /// The last renewal may have been stored although its answer was not read: after a conflict the lease is read again,
    /// and released if it is still this holder's.
    async fn release(&self, mut held: Held) {
        for _ in 0..RELEASE_ATTEMPTS {
            match self.write_release(&held).await {
                Ok(_) => {
                    tracing::info!(lease = self.settings.name, "Lease released");
                    return;
                }
                Err(error) if is_conflict(&error) => {
                    if matches!(self.read_again(&mut held).await, Renewal::Lost) {
                        return;
                    }
                }
                // It expires by itself.
                Err(error) => {
                    self.failed("release", &error);
                    return;
                }
            }
        }
    }

    async fn write_release(&self, held: &Held) -> kube::Result<Lease> {
        let mut lease = held.lease.clone();
        if let Some(spec) = &mut lease.spec {
            spec.holder_identity = None;
        }
        let params = PostParams::default();
        let replaced = self.api.replace(&self.settings.name, &params, &lease);
        bounded(held.until, replaced).await
    }

    fn failed(&self, what: &str, error: &kube::Error) {
        self.metrics.error(client_reason(error));
        let error = chain(&Failure {
            what,
            source: error,
        });
        tracing::debug!(lease = self.settings.name, error, "Lease request failed");
        self.check.fail(error);
    }
}

/// An error with its operation.
#[derive(Debug, thiserror::Error)]
#[error("failed to {what} the lease")]
struct Failure<'a> {
    what: &'a str,
    source: &'a kube::Error,
}

/// Ends a request at a deadline.
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
