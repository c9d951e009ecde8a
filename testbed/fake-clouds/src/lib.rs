//! Fakes of clouds in memory, because no cloud can be reached from tests: just the calls that commands and operators make, with
//! the refusals that matter for the order of calls.
//!
//! A [`Cloud`] answers calls without I/O. A [`Fake`] around it can be called like a cloud, remembers all calls, and has
//! [faults](Fault).

pub mod azure;
pub mod azure_private_link;
pub mod google_cloud;
pub mod google_private_connect;
pub mod ibm_cloud;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::StatusCode;
use serde_json::{Value, json};
use support::rest::{Calls, Error, Request, Response, refused};

/// What a cloud has, and how it answers.
pub trait Cloud: Send {
    /// Answers a call.
    fn answer(&mut self, request: &Request) -> Answer;

    /// What takes time makes one step.
    fn pass_time(&mut self) {}

    /// What there is, a line for each object: to compare with, and to see what is left.
    fn snapshot(&self) -> Vec<String>;
}

/// A response, or a refusal.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The document.
    pub body: Value,
}

/// What happens at one call, by its number from zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The program is killed before it.
    KilledBefore(usize),
    /// The program is killed after it had its effect.
    KilledAfter(usize),
    /// It has its effect, and its response is lost.
    Lost(usize),
}

/// A cloud that can be called.
#[derive(Debug)]
pub struct Fake<C>(Mutex<State<C>>);

/// A cloud, its calls, and what goes wrong.
#[derive(Debug)]
pub struct State<C> {
    /// The cloud.
    pub cloud: C,
    /// All calls since the fault was set.
    pub calls: Vec<Request>,
    fault: Option<Fault>,
}

// === impl Answer ===

impl Answer {
    /// Success with a document.
    pub fn ok(body: Value) -> Self {
        Self::new(200, body)
    }

    /// Success without a document.
    pub fn empty(status: u16) -> Self {
        Self::new(status, Value::Null)
    }

    /// A refusal in the form of Azure and Google Cloud.
    pub fn refused(status: u16, code: &str, message: &str) -> Self {
        let error = json!({"code": code, "status": code, "message": message});
        Self::new(status, json!({ "error": error }))
    }

    /// A response.
    pub fn new(status: u16, body: Value) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body,
        }
    }

    /// With a header, whose name is in lower case.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

// === impl Fake ===

impl<C: Cloud> Fake<C> {
    /// A fake of a cloud.
    pub fn new(cloud: C) -> Self {
        Self(Mutex::new(State {
            cloud,
            calls: Vec::new(),
            fault: None,
        }))
    }

    /// The cloud and its calls. Not to be held while something is called.
    pub fn state(&self) -> MutexGuard<'_, State<C>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets the calls, and has a fault at one of the next.
    pub fn set_fault(&self, fault: Option<Fault>) {
        let mut state = self.state();
        state.calls.clear();
        state.fault = fault;
    }

    /// How many calls there were.
    pub fn count(&self) -> usize {
        self.state().calls.len()
    }

    /// What there is.
    pub fn snapshot(&self) -> Vec<String> {
        self.state().cloud.snapshot()
    }

    /// The calls that write, as `METHOD host/path`, without hosts' and queries' noise.
    pub fn writes(&self) -> Vec<String> {
        let state = self.state();
        let writes = state
            .calls
            .iter()
            .filter(|call| call.method != http::Method::GET);
        let line = |call: &Request| format!("{} {}{}", call.method, call.host(), call.path());
        writes.map(line).collect()
    }

    fn respond(&self, request: &Request) -> Result<Response, Error> {
        let mut state = self.state();
        let number = state.calls.len();
        state.calls.push(request.clone());
        let killed = || error(request, 403, "Killed");
        match state.fault {
            Some(Fault::KilledBefore(at)) if number >= at => return Err(killed()),
            Some(Fault::KilledAfter(at)) if number > at => return Err(killed()),
            _ => {}
        }
        let answer = state.cloud.answer(request);
        match state.fault {
            Some(Fault::KilledAfter(at)) if number == at => return Err(killed()),
            Some(Fault::Lost(at)) if number == at => return Err(error(request, 500, "Lost")),
            _ => {}
        }
        let status = StatusCode::from_u16(answer.status).unwrap_or_default();
        if !status.is_success() {
            return Err(refused(request, status, &answer.body));
        }
        Ok(Response {
            status: answer.status,
            headers: answer.headers.into_iter().collect(),
            body: answer.body,
        })
    }
}

impl<C: Cloud> Calls for Fake<C> {
    async fn call(&self, request: &Request) -> Result<Response, Error> {
        self.respond(request)
    }

    async fn pause(&self, _: Duration) {
        self.state().cloud.pass_time();
    }
}

fn error(request: &Request, status: u16, code: &str) -> Error {
    let status = StatusCode::from_u16(status).unwrap_or_default();
    refused(request, status, &json!({"error": {"code": code}}))
}
