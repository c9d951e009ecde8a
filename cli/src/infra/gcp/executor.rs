//! Makes calls until what a plan names exists: looks first, creates what is missing, waits until it can be used.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::{Duration, Instant};

use http::Method;
use serde_json::Value;
use support::google_cloud::IAM;
use support::rest::{Calls, Error, Request};

use super::scope::Scope;
use crate::install::display::Display;

/// Between two looks at what takes time.
const INTERVAL: Duration = Duration::from_secs(2);
/// How long an operation may take, and how long is waited for what is in use.
const LIMIT: Duration = Duration::from_mins(5);
/// The pauses before what is new is known everywhere: from the first to the longest, and all of them together.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(16);
const ALL_PAUSES: Duration = Duration::from_mins(2);

/// Makes calls for one infrastructure.
pub(crate) struct Executor<'a, C> {
    pub(crate) calls: &'a C,
    pub(crate) scope: &'a Scope,
    pub(crate) display: &'a Display,
}

/// Pauses of the same length, up to a limit.
pub(super) struct Patience {
    passed: Duration,
    started: Instant,
}

/// Pauses that become longer, up to a limit.
pub(super) struct Backoff {
    next: Duration,
    passed: Duration,
}

// === impl Executor ===

impl<C: Calls> Executor<'_, C> {
    pub(super) async fn call(&self, request: &Request) -> Result<Value, Error> {
        self.calls.call(request).await.map(|response| response.body)
    }

    /// What is at a URL.
    pub(super) async fn find(&self, url: &str) -> Result<Option<Value>, Error> {
        match self.call(&Request::get(url)).await {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.is_absent() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Waits until an operation of Compute Engine is done. `place` is where its resource is.
    pub(super) async fn finish(&self, place: &str, operation: &Value) -> Result<(), Error> {
        let name = operation["name"].as_str().unwrap_or_default();
        let url = self
            .scope
            .compute(&format!("{place}/operations/{name}/wait"));
        let request = Request::new(Method::POST, url);
        let done = self.poll(&request, |it| it["status"] == "DONE").await?;
        let status = done["httpErrorStatusCode"].as_u64();
        match done.pointer("/error/errors/0") {
            Some(error) => Err(failed(&request, status, error)),
            None => Ok(()),
        }
    }

    /// Waits until an operation of IAM is done.
    pub(super) async fn finish_identity(&self, operation: &Value) -> Result<(), Error> {
        let name = operation["name"].as_str().unwrap_or_default();
        let request = Request::get(format!("{IAM}/{name}"));
        let done = self.poll(&request, |it| it["done"] == true).await?;
        match done.get("error") {
            Some(error) => Err(failed(&request, None, error)),
            None => Ok(()),
        }
    }

    /// Repeats a call until its response says that something is done.
    async fn poll(&self, request: &Request, is_done: fn(&Value) -> bool) -> Result<Value, Error> {
        let mut patience = Patience::new();
        loop {
            match self.call(request).await {
                Ok(operation) if is_done(&operation) => return Ok(operation),
                Ok(_) => {}
                // Google Cloud waits as long as a request may take.
                Err(error) if error.is_uncertain() => {}
                Err(error) => return Err(error),
            }
            if !patience.pause(self.calls).await {
                return Err(Error::Response {
                    what: request.what(),
                    problem: format!(
                        "the operation is not done after {} s: run the command again to continue",
                        LIMIT.as_secs()
                    ),
                });
            }
        }
    }

    pub(super) fn say(&self, line: &str) {
        self.display.say(line);
    }

    pub(super) fn report(&self, noun: &str, name: &str, exists: bool) {
        let state = if exists { "exists" } else { "would be created" };
        self.say(&format!("{noun} {name}: {state}"));
    }
}

// === impl Patience ===

impl Patience {
    pub(super) fn new() -> Self {
        Self {
            passed: Duration::ZERO,
            started: Instant::now(),
        }
    }

    /// Whether the limit is not reached yet: then it has paused.
    pub(super) async fn pause(&mut self, calls: &impl Calls) -> bool {
        // Calls take time, too.
        if self.passed.max(self.started.elapsed()) >= LIMIT {
            return false;
        }
        calls.pause(INTERVAL).await;
        self.passed += INTERVAL;
        true
    }
}

// === impl Backoff ===

impl Backoff {
    pub(super) fn new() -> Self {
        Self {
            next: FIRST_PAUSE,
            passed: Duration::ZERO,
        }
    }

    /// Whether the limit is not reached yet: then it has paused.
    pub(super) async fn pause(&mut self, calls: &impl Calls) -> bool {
        if self.passed >= ALL_PAUSES {
            return false;
        }
        calls.pause(jittered(self.next)).await;
        self.passed += self.next;
        self.next = (self.next * 2).min(LONGEST_PAUSE);
        true
    }
}

/// A pause that is up to a quarter shorter or longer, so that two commands do not conflict again and again.
fn jittered(pause: Duration) -> Duration {
    let random = RandomState::new().build_hasher().finish() % 51;
    let percent = u32::try_from(random).unwrap_or_default() + 75;
    pause * percent / 100
}

/// Whether a resource is being created, changed or deleted.
pub(super) fn is_not_ready(error: &Error) -> bool {
    has(error, "resourcenotready", "is not ready")
}

/// Whether something else uses a resource.
pub(super) fn is_in_use(error: &Error) -> bool {
    has(
        error,
        "resourceinusebyanotherresource",
        "is already being used by",
    )
}

/// Whether a refusal has a code, which calls and operations spell in two ways, or a message instead of it.
fn has(error: &Error, code: &str, words: &str) -> bool {
    let Error::Refused {
        code: found,
        message,
        ..
    } = error
    else {
        return false;
    };
    found.replace('_', "").eq_ignore_ascii_case(code) || message.contains(words)
}

/// The refusal of an operation that has failed.
fn failed(request: &Request, status: Option<u64>, error: &Value) -> Error {
    let code = &error["code"];
    let code = code
        .as_str()
        .map_or_else(|| code.to_string(), str::to_owned);
    let status = status.and_then(|status| u16::try_from(status).ok());
    Error::Refused {
        what: request.what(),
        status: status.unwrap_or(400),
        code,
        message: error["message"].as_str().unwrap_or_default().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn refusals_of_calls_and_of_operations_are_recognized() {
        let request = Request::get("https://a");
        let refused = |code: &str, message: &str| {
            failed(&request, None, &json!({ "code": code, "message": message }))
        };
        for (code, message, not_ready, in_use) in [
            ("resourceNotReady", "", true, false),
            ("RESOURCE_NOT_READY", "", true, false),
            (
                "INVALID_ARGUMENT",
                "The resource 'a' is not ready",
                true,
                false,
            ),
            ("resourceInUseByAnotherResource", "", false, true),
            ("RESOURCE_IN_USE_BY_ANOTHER_RESOURCE", "", false, true),
            (
                "",
                "The resource 'a' is already being used by 'b'",
                false,
                true,
            ),
            ("QUOTA_EXCEEDED", "", false, false),
        ] {
            let error = refused(code, message);
            let found = (is_not_ready(&error), is_in_use(&error));
            assert_eq!(found, (not_ready, in_use), "{code} {message}");
        }
        let numbered = failed(&request, Some(409), &json!({ "code": 6, "message": "m" }));
        assert_eq!((numbered.status(), numbered.code()), (Some(409), "6"));
    }

    #[test]
    fn pauses_differ_by_a_quarter_at_most() {
        for _ in 0..100 {
            let pause = jittered(Duration::from_secs(4)).as_millis();
            assert!((3000..=5000).contains(&pause), "{pause}");
        }
    }
}
