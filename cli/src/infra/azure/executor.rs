//! Makes calls until what is desired exists: looks first, creates what is missing, waits until it can be used.

use std::time::Duration;

use anyhow::{Context as _, bail};
use http::StatusCode;
use serde_json::Value;
use support::rest::{Calls, Error, Request, Response, refused};

use super::network::Desired;
use super::operation::{INTERVAL, Operation, State, has_failed, is_pending};
use super::scope::{Owner, Scope};
use crate::install::display::Display;

/// How long an operation may take. Groups with many resources are deleted in half an hour.
const LIMIT: Duration = Duration::from_hours(1);
/// How often a change is repeated that conflicts with another one.
const CONFLICTS: u32 = 5;
/// The pause before the first repetition; each one is twice as long.
const CONFLICT_PAUSE: Duration = Duration::from_secs(5);

/// Makes calls for one infrastructure.
pub(crate) struct Executor<'a, C> {
    pub(crate) calls: &'a C,
    pub(crate) scope: &'a Scope,
    pub(crate) display: &'a Display,
}

// === impl Executor ===

impl<C: Calls> Executor<'_, C> {
    /// The document of a resource, if it exists.
    pub(super) async fn find(&self, id: &str, version: &str) -> Result<Option<Value>, Error> {
        let request = Request::get(self.scope.url(id, version));
        match self.calls.call(&request).await {
            Ok(response) => Ok(Some(response.body)),
            Err(error) if error.is_absent() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The same, once it is not being changed any more.
    pub(super) async fn find_settled(
        &self,
        id: &str,
        version: &str,
    ) -> Result<Option<Value>, Error> {
        let mut passed = Duration::ZERO;
        while passed < LIMIT {
            match self.find(id, version).await? {
                Some(found) if is_pending(&found) => self.calls.pause(INTERVAL).await,
                found => return Ok(found),
            }
            passed += INTERVAL;
        }
        Err(unfinished(&Request::get(self.scope.url(id, version))))
    }

    /// All items of a list.
    pub(super) async fn list(&self, url: String) -> Result<Vec<Value>, Error> {
        let mut items = Vec::new();
        let mut next = Some(url);
        while let Some(url) = next {
            let mut page = self.calls.call(&Request::get(url)).await?.body;
            if let Some(more) = page["value"].as_array_mut() {
                items.append(more);
            }
            let url = page["nextLink"].as_str().filter(|url| !url.is_empty());
            next = url.map(str::to_owned);
        }
        Ok(items)
    }

    /// Finds a resource or creates it. One that is not of this infrastructure is not taken over.
    pub(super) async fn ensure(&self, desired: &Desired) -> anyhow::Result<Value> {
        let (noun, name) = (desired.noun, desired.name());
        let what = || format!("failed to create {noun} {name}");
        let found = self.find_settled(&desired.id, desired.version).await;
        if let Some(found) = found.with_context(what)? {
            self.refuse_foreign(desired, &found)?;
            if !has_failed(&found) {
                self.say(&format!("{noun} {name}: exists"));
                return Ok(found);
            }
        }
        let made = self.put(desired).await.with_context(what)?;
        self.say(&format!("{noun} {name}: created"));
        Ok(made)
    }

    fn refuse_foreign(&self, desired: &Desired, found: &Value) -> anyhow::Result<()> {
        let (noun, name) = (desired.noun, desired.name());
        match self.scope.owner(&found["tags"]) {
            Owner::Ours => Ok(()),
            Owner::Other(infra_id) => bail!(
                "{noun} {name} belongs to infrastructure {infra_id}: choose another --infra-id, or --name"
            ),
            Owner::Unknown => bail!(
                "{noun} {name} exists, and has no tag {}: it was not created for this infrastructure. Name it by a flag \
                 to use it as it is, or choose another --infra-id",
                self.scope.cluster_tag()
            ),
        }
    }

    /// Creates or replaces a resource, and waits until it can be used.
    pub(super) async fn put(&self, desired: &Desired) -> Result<Value, Error> {
        let url = self.scope.url(&desired.id, desired.version);
        let request = Request::put(url, desired.body.clone());
        let response = self.send_put(&request).await?;
        let takes_time = self.finish(&request, &response).await?;
        if !takes_time && response.body.is_object() && !is_pending(&response.body) {
            return Ok(response.body);
        }
        let made = self.find_settled(&desired.id, desired.version).await?;
        made.ok_or_else(|| Error::Response {
            what: request.what(),
            problem: "it succeeded, and the resource does not exist: run the command again"
                .to_owned(),
        })
    }

    async fn send_put(&self, request: &Request) -> Result<Response, Error> {
        let mut pause = CONFLICT_PAUSE;
        for _ in 0..CONFLICTS {
            match self.calls.call(request).await {
                Err(error) if error.is_conflict() => self.calls.pause(pause).await,
                result => return result,
            }
            pause *= 2;
        }
        self.calls.call(request).await
    }

    /// Deletes a resource, and waits until it is gone.
    pub(super) async fn delete(&self, id: &str, version: &str) -> Result<(), Error> {
        let request = Request::delete(self.scope.url(id, version));
        match self.calls.call(&request).await {
            Ok(response) => self.finish(&request, &response).await.map(drop),
            Err(error) if error.is_absent() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Waits for the operation that a response names. Whether there was one.
    async fn finish(&self, request: &Request, response: &Response) -> Result<bool, Error> {
        let Some(operation) = Operation::of(response) else {
            return Ok(false);
        };
        let question = Request::get(operation.url.clone());
        let mut passed = Duration::ZERO;
        while passed < LIMIT {
            self.calls.pause(operation.interval).await;
            passed += operation.interval;
            let answer = match self.calls.call(&question).await {
                Ok(answer) => answer,
                // Azure forgets operations of what is gone.
                Err(error) if error.is_absent() => return Ok(true),
                Err(error) => return Err(error),
            };
            match operation.state(&answer) {
                State::Pending => {}
                State::Done => return Ok(true),
                // It is no conflict, which would be repeated at once.
                State::Failed(body) => {
                    return Err(refused(request, StatusCode::UNPROCESSABLE_ENTITY, &body));
                }
            }
        }
        Err(unfinished(request))
    }

    pub(super) fn say(&self, line: &str) {
        self.display.say(line);
    }
}

fn unfinished(request: &Request) -> Error {
    Error::Response {
        what: request.what(),
        problem: format!(
            "Azure has not finished it within {} minutes: run the command again to continue",
            LIMIT.as_secs() / 60
        ),
    }
}
