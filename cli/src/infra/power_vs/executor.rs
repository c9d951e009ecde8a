//! Makes calls until what should exist exists: looks first, creates what is missing, waits until it can be used.

use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use serde_json::Value;
use support::ibm_cloud::{ApiKey, encoded};
use support::rest::{Calls, Error, Request};

use super::api::Api;
use super::scope::Scope;
use crate::install::display::{Display, Step};

/// Attempts at a creation whose response was lost, or that something that happens at the same time prevents.
const ATTEMPTS: u32 = 10;
const INTERVAL: Duration = Duration::from_secs(5);
/// The most pages of a list: no account has as many objects.
const PAGES: u32 = 1000;

/// Makes calls for one infrastructure.
pub(crate) struct Executor<'a, C> {
    pub(crate) calls: &'a C,
    pub(crate) scope: &'a Scope,
    pub(crate) api: &'a Api,
    pub(crate) key: &'a ApiKey,
    pub(crate) display: &'a Display,
}

/// How often something that takes time is looked at, and for how long.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    pub(super) interval: Duration,
    limit: Duration,
}

/// The state in which something can be used.
#[derive(Debug, Clone, Copy)]
pub(super) struct Goal {
    pub(super) field: &'static str,
    pub(super) ready: &'static str,
    /// States that it does not leave.
    pub(super) failed: &'static [&'static str],
    pub(super) pace: Pace,
}

/// What was found or created.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) value: Value,
    pub(super) is_new: bool,
}

// === impl Pace ===

impl Pace {
    pub(super) const fn new(seconds: u64, limit_minutes: u64) -> Self {
        Self {
            interval: Duration::from_secs(seconds),
            limit: Duration::from_secs(60 * limit_minutes),
        }
    }
}

// === impl Executor ===

impl<C: Calls> Executor<'_, C> {
    pub(super) async fn send(&self, request: &Request) -> Result<Value, Error> {
        Ok(self.calls.call(request).await?.body)
    }

    /// What a call responds with, if what it names is there.
    pub(super) async fn find(&self, request: &Request) -> Result<Option<Value>, Error> {
        match self.send(request).await {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.is_absent() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The items of all pages.
    pub(super) async fn list(&self, first: &Request, field: &str) -> Result<Vec<Value>, Error> {
        let mut items = Vec::new();
        let mut request = first.clone();
        for _ in 0..PAGES {
            let mut page = self.send(&request).await?;
            if let Some(found) = page.get_mut(field).and_then(Value::as_array_mut) {
                items.append(found);
            }
            let Some(next) = next_page(first, &page) else {
                break;
            };
            request = next;
        }
        Ok(items)
    }

    /// Finds something, or creates it.
    pub(super) async fn ensure(
        &self,
        what: &str,
        find: impl AsyncFn() -> anyhow::Result<Option<Value>>,
        create: &Request,
    ) -> anyhow::Result<Made> {
        let context = || format!("failed to create {what}");
        let mut attempt = 1;
        loop {
            if let Some(value) = find().await.with_context(context)? {
                self.say(&format!("{what}: exists"));
                let is_new = attempt > 1;
                return Ok(Made { value, is_new });
            }
            let error = match self.send(create).await {
                Ok(value) => {
                    self.say(&format!("{what}: created"));
                    let is_new = true;
                    return Ok(Made { value, is_new });
                }
                Err(error) => error,
            };
            if !is_worth_it(&error) || attempt == ATTEMPTS {
                return Err(error).with_context(context);
            }
            attempt += 1;
            self.calls.pause(INTERVAL).await;
        }
    }

    /// Waits until something can be used.
    pub(super) async fn until_ready(
        &self,
        what: &str,
        goal: &Goal,
        look: &Request,
    ) -> anyhow::Result<Value> {
        let mut passed = Duration::ZERO;
        let mut step: Option<Step<'_>> = None;
        loop {
            let state = match self.send(look).await {
                Ok(value) => {
                    let state = text(&value[goal.field]).to_owned();
                    if state == goal.ready {
                        if let Some(step) = step {
                            step.done("ready");
                        }
                        return Ok(value);
                    }
                    if goal.failed.contains(&state.as_str()) {
                        bail!("{what} is in state {state}: delete it, and run the command again");
                    }
                    state
                }
                Err(error) if error.is_uncertain() || error.is_absent() => error.to_string(),
                Err(error) => {
                    return Err(error).with_context(|| format!("failed to wait for {what}"));
                }
            };
            if passed >= goal.pace.limit {
                bail!(
                    "{what} cannot be used after {} s ({state}): run the command again to continue",
                    passed.as_secs()
                );
            }
            step.get_or_insert_with(|| self.display.step(&format!("waiting for {what}")))
                .update(&state);
            self.calls.pause(goal.pace.interval).await;
            passed += goal.pace.interval;
        }
    }

    /// Deletes something, and waits until it is gone. What still uses it may be about to go.
    pub(super) async fn remove(
        &self,
        what: &str,
        pace: Pace,
        delete: &Request,
        look: &Request,
    ) -> anyhow::Result<()> {
        let mut passed = Duration::ZERO;
        let mut step = self.display.step(&format!("deleting {what}"));
        let mut is_accepted = false;
        loop {
            let mut state = "deleting".to_owned();
            if !is_accepted {
                match self.send(delete).await {
                    Ok(_) => is_accepted = true,
                    Err(error) if error.is_absent() => is_accepted = true,
                    Err(error) if is_worth_it(&error) => state = error.to_string(),
                    Err(error) => {
                        return Err(error).with_context(|| format!("failed to delete {what}"));
                    }
                }
            }
            match self.find(look).await {
                Ok(found) if found.as_ref().is_none_or(is_deleted) => {
                    step.done("deleted");
                    return Ok(());
                }
                Ok(_) => {}
                Err(error) if error.is_uncertain() => state = error.to_string(),
                Err(error) => {
                    return Err(error).with_context(|| format!("failed to delete {what}"));
                }
            }
            if passed >= pace.limit {
                bail!("{what} still exists after {} s ({state})", passed.as_secs());
            }
            step.update(&state);
            self.calls.pause(pace.interval).await;
            passed += pace.interval;
        }
    }

    /// Deletes something at once. What is gone already is no error.
    pub(super) async fn delete(&self, what: &str, delete: &Request) -> anyhow::Result<()> {
        match self.send(delete).await {
            Ok(_) => {}
            Err(error) if error.is_absent() => {}
            Err(error) => return Err(error).with_context(|| format!("failed to delete {what}")),
        }
        self.say(&format!("{what}: deleted"));
        Ok(())
    }

    pub(super) fn say(&self, line: &str) {
        self.display.say(line);
    }
}

/// Whether a creation or a deletion is repeated: it may have had its effect, or something else is under way.
fn is_worth_it(error: &Error) -> bool {
    error.is_uncertain() || error.is_conflict()
}

/// Whether an instance of a service is only listed because it was deleted not long ago.
pub(super) fn is_deleted(value: &Value) -> bool {
    ["removed", "pending_reclamation"].contains(&text(&value["state"]))
}

/// A text; empty if there is none.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The identifier that a response must have.
pub(super) fn id(what: &str, value: &Value) -> anyhow::Result<String> {
    required(what, value, "id")
}

/// A text that a response must have.
pub(super) fn required(what: &str, value: &Value, field: &str) -> anyhow::Result<String> {
    match text(&value[field]) {
        "" => Err(anyhow!("{what}: the response has no {field}")),
        found => Ok(found.to_owned()),
    }
}

/// The call for the next page. Only the token of the link is used: the link itself may name any host.
fn next_page(first: &Request, page: &Value) -> Option<Request> {
    let links = [&page["next"]["href"], &page["next_url"], &page["next"]];
    let link = Request::get(links.into_iter().find_map(Value::as_str)?);
    let of = |name: &'static str| Some((name, link.parameter(name)?));
    let (name, token) = ["start", "pagetoken"].into_iter().find_map(of)?;
    let separator = if first.url.contains('?') { '&' } else { '?' };
    let mut next = first.clone();
    next.url = format!("{}{separator}{name}={}", first.url, encoded(&token));
    Some(next)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_next_page_is_on_the_same_host() {
        for (url, page, expected) in [
            (
                "https://a/v1/vpcs?version=1",
                json!({ "next": { "href": "https://b/v1/vpcs?limit=1&start=x%2Fy" } }),
                Some("https://a/v1/vpcs?version=1&start=x%2Fy"),
            ),
            (
                "https://a/v2/i",
                json!({ "next_url": "/v2/i?start=1" }),
                Some("https://a/v2/i?start=1"),
            ),
            (
                "https://a/v1/k?type=serviceid",
                json!({ "next": "https://a/v1/k?pagetoken=p" }),
                Some("https://a/v1/k?type=serviceid&pagetoken=p"),
            ),
            (
                "https://a/v1/k",
                json!({ "next": null, "next_url": null }),
                None,
            ),
            (
                "https://a/v1/k",
                json!({ "next": { "href": "https://a/v1/k" } }),
                None,
            ),
            ("https://a/v1/k", json!([]), None),
        ] {
            let next = next_page(&Request::get(url), &page);
            assert_eq!(next.map(|next| next.url).as_deref(), expected, "{page}");
        }
    }
}
