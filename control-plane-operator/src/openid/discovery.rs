//! Known endpoints of providers, refreshed in the background.
//!
//! A pass gets what is known at once, and the next pass is triggered when something else is known. Endpoints that cannot be
//! refreshed are kept: otherwise a short outage of a provider would restart the OAuth server without it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use control_plane_component::facts::OpenIdEndpoints;
use support::error::chain;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::error::Error;
use super::inquiry::{Fingerprint, Inquiry, Source};

/// How long a discovery document is valid.
const VALID: Duration = Duration::from_mins(10);
/// How long the result of a password probe is valid, for the same client Secret.
const PROBE_VALID: Duration = Duration::from_hours(7 * 24);
/// Times until the second attempt, and between later ones: doubled with each, up to the latter.
const RETRY: (Duration, Duration) = (Duration::from_secs(30), Duration::from_mins(2));
/// Providers that are asked at the same time.
const CONCURRENCY: usize = 4;
/// The longest reason of a failure.
const MAX_REASON: usize = 512;

/// Asks a provider.
pub(crate) trait Ask: Clone + Send + Sync + 'static {
    /// Reads its endpoints.
    fn endpoints(
        &self,
        inquiry: &Inquiry,
    ) -> impl Future<Output = Result<OpenIdEndpoints, Error>> + Send;

    /// Finds out whether the URL that issues tokens accepts passwords.
    fn supports_passwords(
        &self,
        inquiry: &Inquiry,
        token: &str,
    ) -> impl Future<Output = Result<bool, Error>> + Send;
}

/// Known endpoints.
#[derive(Default)]
pub(crate) struct Discovery {
    state: Arc<State>,
    /// Requests in progress. They end with the leader election term.
    tasks: Mutex<JoinSet<()>>,
}

/// What is known of the providers of a pass.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Findings {
    pub(crate) endpoints: BTreeMap<String, OpenIdEndpoints>,
    /// Why endpoints are unknown, or could not be refreshed.
    pub(crate) failures: BTreeMap<String, String>,
}

struct State {
    entries: Mutex<BTreeMap<String, Entry>>,
    changed: Notify,
    permits: Semaphore,
}

/// A provider.
struct Entry {
    source: Source,
    fingerprint: Fingerprint,
    known: Option<OpenIdEndpoints>,
    probe: Option<Probe>,
    failure: Option<Failure>,
    /// When it is asked again.
    due: Instant,
    is_running: bool,
}

struct Failure {
    reason: String,
    consecutive: u32,
}

/// The result of a password probe.
#[derive(Clone)]
struct Probe {
    token: String,
    supports_passwords: bool,
    until: Instant,
}

// === impl Discovery ===

impl Discovery {
    /// Returns what is known of these providers, and asks those that are due. `asker` fails if there is no way to them yet.
    pub(crate) fn update<A: Ask>(
        &self,
        inquiries: Vec<Inquiry>,
        asker: &Result<A, Error>,
    ) -> Findings {
        let now = Instant::now();
        let mut entries = self.state.entries();
        entries.retain(|name, _| inquiries.iter().any(|inquiry| inquiry.name == *name));
        for inquiry in inquiries {
            let entry = match entries.entry(inquiry.name.clone()) {
                std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
                std::collections::btree_map::Entry::Vacant(place) => {
                    place.insert(Entry::new(&inquiry, now))
                }
            };
            entry.follow(&inquiry, now);
            if entry.is_running || entry.due > now {
                continue;
            }
            match asker {
                Ok(asker) => {
                    entry.is_running = true;
                    let probe = entry.probe.clone().filter(|probe| now < probe.until);
                    self.spawn(asker.clone(), inquiry, probe);
                }
                // The next pass tries again: no request was sent.
                Err(error) => entry.unreachable(error),
            }
        }
        found(&entries)
    }

    /// Completes when something else is known.
    pub(crate) async fn changed(&self) {
        self.state.changed.notified().await;
    }

    fn spawn<A: Ask>(&self, asker: A, inquiry: Inquiry, probe: Option<Probe>) {
        let state = Arc::clone(&self.state);
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            let result = {
                let _permit = state.permits.acquire().await;
                ask(&asker, &inquiry, probe).await
            };
            state.record(&inquiry, result);
        });
    }
}

/// Asks a provider. A valid probe of the same URL is not repeated.
async fn ask(
    asker: &impl Ask,
    inquiry: &Inquiry,
    probe: Option<Probe>,
) -> Result<(OpenIdEndpoints, Option<Probe>), Error> {
    let mut endpoints = asker.endpoints(inquiry).await?;
    if !inquiry.needs_probe {
        return Ok((endpoints, None));
    }
    let probe = match probe.filter(|probe| probe.token == endpoints.token) {
        Some(probe) => probe,
        None => Probe {
            supports_passwords: asker.supports_passwords(inquiry, &endpoints.token).await?,
            token: endpoints.token.clone(),
            until: Instant::now() + PROBE_VALID,
        },
    };
    endpoints.challenge = probe.supports_passwords;
    Ok((endpoints, Some(probe)))
}

fn found(entries: &BTreeMap<String, Entry>) -> Findings {
    let mut found = Findings::default();
    for (name, entry) in entries {
        if let Some(known) = &entry.known {
            found.endpoints.insert(name.clone(), known.clone());
        }
        if let Some(failure) = &entry.failure {
            found.failures.insert(name.clone(), failure.reason.clone());
        }
    }
    found
}

// === impl State ===

impl Default for State {
    fn default() -> Self {
        Self {
            entries: Mutex::default(),
            changed: Notify::new(),
            permits: Semaphore::new(CONCURRENCY),
        }
    }
}

impl State {
    fn entries(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, inquiry: &Inquiry, result: Result<(OpenIdEndpoints, Option<Probe>), Error>) {
        let now = Instant::now();
        let mut entries = self.entries();
        let before = found(&entries);
        let Some(entry) = entries.get_mut(&inquiry.name) else {
            return;
        };
        entry.is_running = false;
        if entry.fingerprint != inquiry.fingerprint() {
            // It has changed meanwhile, and is asked again by the next pass.
            self.changed.notify_one();
            return;
        }
        match result {
            Ok((endpoints, probe)) => {
                if entry.failure.is_some() {
                    tracing::info!(provider = inquiry.name, "Identity provider responds again");
                }
                entry.known = Some(endpoints);
                entry.probe = probe;
                entry.failure = None;
                entry.due = now + VALID;
            }
            Err(error) => entry.failed(&inquiry.name, &error, now),
        }
        if found(&entries) != before {
            self.changed.notify_one();
        }
    }
}

// === impl Entry ===

impl Entry {
    fn new(inquiry: &Inquiry, now: Instant) -> Self {
        Self {
            source: inquiry.source.clone(),
            fingerprint: inquiry.fingerprint(),
            known: inquiry.earlier.clone(),
            probe: None,
            failure: None,
            due: now,
            is_running: false,
        }
    }

    /// Takes over changes of the provider. Endpoints are kept while their source is the same.
    fn follow(&mut self, inquiry: &Inquiry, now: Instant) {
        let fingerprint = inquiry.fingerprint();
        if self.fingerprint == fingerprint {
            return;
        }
        let is_running = self.is_running;
        let known = self.known.take();
        let known = known.filter(|_| self.source == inquiry.source);
        *self = Self {
            known: known.or_else(|| inquiry.earlier.clone()),
            is_running,
            ..Self::new(inquiry, now)
        };
    }

    fn unreachable(&mut self, error: &Error) {
        let consecutive = self.failure.as_ref().map_or(0, |it| it.consecutive);
        self.failure = Some(Failure {
            reason: reason(error),
            consecutive,
        });
    }

    fn failed(&mut self, provider: &str, error: &Error, now: Instant) {
        let reason = reason(error);
        let consecutive = self.failure.as_ref().map_or(0, |it| it.consecutive);
        if consecutive == 0 {
            tracing::warn!(
                provider,
                error = reason,
                "Failed to discover identity provider"
            );
        }
        let (first, longest) = RETRY;
        let delay = first.saturating_mul(1 << consecutive.min(8)).min(longest);
        self.due = now + delay;
        self.failure = Some(Failure {
            reason,
            consecutive: consecutive.saturating_add(1),
        });
    }
}

fn reason(error: &Error) -> String {
    let text = chain(error);
    text.chars()
        .filter(|c| !c.is_control())
        .take(MAX_REASON)
        .collect()
}

#[cfg(test)]
mod tests;
