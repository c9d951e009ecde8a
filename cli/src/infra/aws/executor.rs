//! Makes calls until what a plan names exists: looks first, creates what is missing, waits until it can be used.

use std::time::Duration;

use anyhow::{Context as _, anyhow};
use support::aws::{Element, Error};

use super::call::{Call, Calls, Tags};
use super::kind::Kind;
use super::scope::{Scope, tags};
use crate::install::display::Display;

/// Attempts at what depends on something that is new.
const ATTEMPTS: u32 = 10;
const INTERVAL: Duration = Duration::from_secs(3);

/// Makes calls for one infrastructure.
pub(crate) struct Executor<'a, C> {
    pub(crate) calls: &'a C,
    pub(crate) scope: &'a Scope,
    pub(crate) display: &'a Display,
}

// === impl Executor ===

impl<C: Calls> Executor<'_, C> {
    pub(crate) async fn call(&self, call: &Call) -> anyhow::Result<Element> {
        self.calls.call(call).await.map_err(Into::into)
    }

    /// A call whose refusal with one of these codes means that there is nothing.
    pub(crate) async fn find_call(
        &self,
        call: &Call,
        absent: &[&str],
    ) -> Result<Option<Element>, Error> {
        match self.calls.call(call).await {
            Ok(response) => Ok(Some(response)),
            Err(error) if absent.contains(&error.code()) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A call that is repeated after refusals with a code of `waits`, and after lost responses. A code of `done` says that an
    /// earlier one had its effect.
    pub(crate) async fn settle(
        &self,
        call: &Call,
        done: &[&str],
        waits: &[&str],
    ) -> anyhow::Result<()> {
        let mut attempt = 1;
        loop {
            let Err(error) = self.calls.call(call).await else {
                return Ok(());
            };
            if done.contains(&error.code()) {
                return Ok(());
            }
            if !is_worth_it(&error, waits) || attempt == ATTEMPTS {
                return Err(error.into());
            }
            attempt += 1;
            self.calls.pause(INTERVAL).await;
        }
    }

    /// A resource of the infrastructure by its name. Of several, always the same one.
    pub(crate) async fn find(&self, kind: Kind, name: &str) -> Result<Option<Element>, Error> {
        let call = kind.owned(self.scope).filter("tag:Name", name);
        let response = self.calls.call(&call).await?;
        // Services may ignore filters that they do not know.
        let is_it = |item: &&Element| {
            let tags = tags(item.items("tagSet"));
            let has_name = tags.get("Name").is_some_and(|it| it == name);
            has_name && self.scope.owns(&tags) && kind.is_alive(item)
        };
        let alive = kind.items(&response).iter().filter(is_it);
        Ok(alive.min_by_key(|item| kind.id(item).to_owned()).cloned())
    }

    /// Finds a resource or creates it with these parameters. A refusal with a code of `waits` is due to something that is new.
    pub(crate) async fn ensure(
        &self,
        kind: Kind,
        name: &str,
        more: &[(&'static str, String)],
        parameters: &[(&str, String)],
        waits: &[&str],
    ) -> anyhow::Result<Element> {
        let mut tags = self.scope.tags(name);
        tags.extend(
            more.iter()
                .map(|(key, value)| ((*key).to_owned(), value.clone())),
        );
        let what = || format!("failed to create {} {name}", kind.noun());
        let mut attempt = 1;
        loop {
            if let Some(found) = self.find(kind, name).await.with_context(what)? {
                self.say(&format!(
                    "{} {name}: exists ({})",
                    kind.noun(),
                    kind.id(&found)
                ));
                self.tag(kind, &found, &tags).await.with_context(what)?;
                return Ok(found);
            }
            let error = match self.calls.call(&kind.create(parameters, &tags)).await {
                Ok(response) => {
                    let id = kind.created(&response);
                    let made = self.visible(kind, id).await.with_context(what)?;
                    self.say(&format!("{} {name}: created ({id})", kind.noun()));
                    self.tag(kind, &made, &tags).await.with_context(what)?;
                    return Ok(made);
                }
                Err(error) => error,
            };
            if !is_worth_it(&error, waits) || attempt == ATTEMPTS {
                return Err(error).with_context(what);
            }
            attempt += 1;
            self.calls.pause(INTERVAL).await;
        }
    }

    /// Waits until a new resource can be seen: calls that name it would fail before.
    async fn visible(&self, kind: Kind, id: &str) -> anyhow::Result<Element> {
        if id.is_empty() {
            return Err(anyhow!("the response has no identifier"));
        }
        for _ in 0..ATTEMPTS {
            match self.calls.call(&kind.one(id)).await {
                Ok(response) => {
                    if let Some(found) = kind.items(&response).first() {
                        return Ok(found.clone());
                    }
                }
                Err(error) if error.code().ends_with("NotFound") => {}
                Err(error) => return Err(error.into()),
            }
            self.calls.pause(INTERVAL).await;
        }
        Err(anyhow!(
            "{id} was created, and cannot be seen yet: run the command again"
        ))
    }

    /// Adds the tags that a resource lacks.
    pub(super) async fn tag(
        &self,
        kind: Kind,
        item: &Element,
        expected: &Tags,
    ) -> anyhow::Result<()> {
        let there = tags(item.items("tagSet"));
        let mut missing = expected.clone();
        missing.retain(|key, value| there.get(key) != Some(&*value));
        if missing.is_empty() {
            return Ok(());
        }
        let call = Call::ec2("CreateTags").list("ResourceId", [kind.id(item)]);
        // Tags that are written twice are there once.
        self.settle(&call.tags("Tag", &missing), &[], &[]).await
    }

    /// Whether the tags of an item of IAM permit to change it.
    pub(super) fn may_change(&self, item: &Element) -> bool {
        self.scope.may_change(&tags(item.items("Tags")))
    }

    pub(crate) fn say(&self, line: &str) {
        self.display.say(line);
    }
}

/// Whether a call is repeated: it may have had its effect, or it was refused with a code of `waits`.
pub(super) fn is_worth_it(error: &Error, waits: &[&str]) -> bool {
    error.is_uncertain() || waits.contains(&error.code())
}
