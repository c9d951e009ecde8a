//! What a server knows between payloads: their results, and what it has written to Secrets.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::failure::{Failure, pause};
use super::served::Certificates;

/// The most payloads that are remembered.
const REMEMBERED: usize = 128;
/// How often a server replaces what another one has written to the Secret of a token. Otherwise they would replace each
/// other's for ever, if they do not find, or make, the same.
const REPLACED: Duration = Duration::from_mins(5);

/// What is known between payloads.
#[derive(Debug, Default)]
pub(in crate::ignition_server) struct State {
    /// Held while a payload is made.
    pub(super) turn: tokio::sync::Mutex<()>,
    pub(super) certificates: Certificates,
    /// By the name of the token's Secret.
    made: Mutex<HashMap<String, Made>>,
    /// When a report about a token has replaced another one.
    reported: Mutex<HashMap<String, Instant>>,
}

/// The result for some inputs.
#[derive(Debug, Clone)]
struct Made {
    fingerprint: [u8; 32],
    result: Result<Bytes, Failure>,
    at: Instant,
    /// How many failures in a row it is the last of.
    failures: u32,
    /// When it has replaced another payload in the Secret.
    written: Instant,
}

/// A payload that programs have made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::ignition_server) struct Payload {
    pub(in crate::ignition_server) bytes: Bytes,
    /// Whether it replaces another one in the Secret of the token.
    pub(in crate::ignition_server) is_due: bool,
}

// === impl State ===

impl State {
    /// Whether there was a result, whatever the inputs were.
    pub(super) fn has(&self, secret: &str) -> bool {
        self.made().contains_key(secret)
    }

    /// The result for the same inputs, unless it is a failure of some time ago.
    pub(super) fn known(
        &self,
        secret: &str,
        fingerprint: &[u8; 32],
    ) -> Option<Result<Payload, Failure>> {
        let mut made = self.made();
        let known = made.get_mut(secret)?;
        if known.fingerprint != *fingerprint {
            return None;
        }
        match &known.result {
            Ok(bytes) => {
                let is_due = known.written.elapsed() >= REPLACED;
                if is_due {
                    known.written = Instant::now();
                }
                let bytes = bytes.clone();
                Some(Ok(Payload { bytes, is_due }))
            }
            Err(failure) => {
                let retry = pause(known.failures).saturating_sub(known.at.elapsed());
                let failure = Failure {
                    retry,
                    is_known: true,
                    ..failure.clone()
                };
                (!retry.is_zero()).then_some(Err(failure))
            }
        }
    }

    /// Keeps a result, and returns it.
    pub(super) fn remember(
        &self,
        secret: String,
        fingerprint: [u8; 32],
        result: Result<Bytes, Failure>,
    ) -> Result<Payload, Failure> {
        let mut made = self.made();
        let before = made.get(&secret);
        let before = before.filter(|before| before.fingerprint == fingerprint);
        let failures = match &result {
            Ok(_) => 0,
            Err(_) => before.map_or(0, |before| before.failures) + 1,
        };
        if made.len() >= REMEMBERED && !made.contains_key(&secret) {
            let oldest = made.iter().min_by_key(|(_, known)| known.at);
            if let Some(oldest) = oldest.map(|(secret, _)| secret.clone()) {
                made.remove(&oldest);
            }
        }
        let now = Instant::now();
        let known = Made {
            fingerprint,
            result: result.clone(),
            at: now,
            failures,
            written: now,
        };
        made.insert(secret, known);
        match result {
            Ok(bytes) => Ok(Payload {
                bytes,
                is_due: true,
            }),
            Err(failure) => Err(Failure {
                retry: pause(failures),
                ..failure
            }),
        }
    }

    /// Whether a report may replace another one now.
    pub(super) fn may_report(&self, secret: &str) -> bool {
        let mut reported = self.reported();
        let last = reported.get(secret);
        if last.is_some_and(|last| last.elapsed() < REPLACED) {
            return false;
        }
        reported.insert(secret.to_owned(), Instant::now());
        true
    }

    /// Drops all of a token that does not exist any more.
    pub(super) fn forget(&self, secret: &str) {
        self.made().remove(secret);
        self.reported().remove(secret);
    }

    fn made(&self) -> MutexGuard<'_, HashMap<String, Made>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reported(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
