//! Keeps the payload of each token at hand, and the tokens fresh.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::{FutureExt, Stream, StreamExt};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{Patch, PatchParams};
use kube::core::PartialObjectMeta;
use kube::runtime::controller::{self, Action, ReconcileRequest, applier, trigger_self};
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::Value;
use support::apply;
use support::error::chain;
use support::health::Check;
use support::reconcile::{Backoff, is_conflict, is_missing};
use support::watch::is_blind;

use super::cache::{Cache, Entry};
use super::metrics::Metrics;
use super::token::{self, AS_EXPECTED, Duty, Malformed, Token};
use super::{payload, read};

/// Who writes, as the API server keeps it.
const MANAGER: &str = "ignition-server";
/// How often a payload is made anew, for changes of what it is made of.
const REFRESH: Duration = Duration::from_mins(5);
/// Before what is missing is looked for again.
const SOON: Duration = Duration::from_secs(5);
/// Secrets that are dealt with at once.
const AT_ONCE: u16 = 4;

type Meta = PartialObjectMeta<Secret>;

/// What reconciling needs.
pub(super) struct Context {
    pub(super) client: kube::Client,
    pub(super) namespace: String,
    pub(super) cache: Arc<Cache>,
    pub(super) metrics: Metrics,
}

/// A Secret could not be dealt with.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("cannot read the Secret of a token")]
    Read(#[source] kube::Error),
    #[error("cannot write to the Secret of a token")]
    Write(#[source] kube::Error),
    #[error("there is no randomness for a token")]
    Random,
}

/// Reconciles, for ever.
pub(super) async fn run(ctx: Arc<Context>, check: &Check) {
    let api: Api<Meta> = Api::namespaced(ctx.client.clone(), &ctx.namespace);
    let writer = Writer::default();
    let store = writer.as_reader();
    let cache = Arc::clone(&ctx.cache);
    let events = watcher(api, watcher::Config::default())
        .backoff(Backoff::default())
        .modify(|found| found.metadata.managed_fields = None)
        .reflect(writer)
        .inspect(move |event| {
            if let Ok(Event::Delete(gone)) = event {
                cache.forget(gone.metadata.name.as_deref().unwrap_or_default());
            }
            if event.is_ok() {
                check.pass();
            }
        })
        .touched_objects();
    let requests = trigger_self(tokens(events), ());
    work(ctx, store, requests, check).await;
}

/// Most Secrets of the namespace are something else.
fn tokens(
    events: impl Stream<Item = Result<Meta, watcher::Error>>,
) -> impl Stream<Item = Result<Meta, watcher::Error>> {
    events.filter(|event| {
        let wanted = event
            .as_ref()
            .map_or(true, |it| token::is_token(&it.metadata));
        async move { wanted }
    })
}

async fn work(
    ctx: Arc<Context>,
    store: kube::runtime::reflector::Store<Meta>,
    requests: impl Stream<Item = Result<ReconcileRequest<Meta>, watcher::Error>>,
    check: &Check,
) {
    let config = controller::Config::default().concurrency(AT_ONCE);
    let done = applier(
        |found: Arc<Meta>, ctx: Arc<Context>| {
            let name = found.metadata.name.clone().unwrap_or_default();
            async move { reconcile(&name, &ctx).await.map(Action::requeue) }.boxed()
        },
        |found: Arc<Meta>, error: &Error, _: Arc<Context>| retry(&found, error),
        ctx,
        store,
        requests,
        config,
    );
    let mut done = std::pin::pin!(done);
    while let Some(done) = done.next().await {
        if let Err(controller::Error::QueueError(error)) = done {
            tracing::debug!(problem = chain(&error), "Watch of Secrets failed");
            if is_blind(&error) {
                check.fail(chain(&error));
            }
        }
    }
}

fn retry(found: &Meta, error: &Error) -> Action {
    if matches!(error, Error::Write(error) if is_conflict(error)) {
        return Action::requeue(Duration::from_millis(200));
    }
    let secret = found.metadata.name.as_deref().unwrap_or_default();
    tracing::warn!(secret, problem = chain(error), "Token failed");
    Action::requeue(SOON)
}

/// Deals with one Secret, and says when to look at it again.
async fn reconcile(name: &str, ctx: &Context) -> Result<Duration, Error> {
    let api: Api<Secret> = Api::namespaced(ctx.client.clone(), &ctx.namespace);
    let found = api.get_opt(name).await.map_err(Error::Read)?;
    let Some(secret) = found.filter(|secret| token::is_token(&secret.metadata)) else {
        ctx.cache.forget(name);
        return Ok(REFRESH);
    };
    let now = Timestamp::now();
    let duty = token::duty(&secret.metadata, now);
    if duty == Duty::Delete {
        ctx.cache.forget(name);
        tracing::info!(secret = name, "Token expired");
        return delete(&api, &secret).await;
    }
    let token = match Token::read(secret) {
        Ok(token) => token,
        Err(error) => return Ok(malformed(name, &error)),
    };
    if duty == Duty::Rotate {
        let change = token.rotation(&token::uuid(random()?), now);
        patch(&api, name, &change).await?;
        ctx.metrics.rotated.inc();
        tracing::info!(secret = name, "Token renewed");
        // The change is seen, and what it brings is kept then.
        return Ok(SOON);
    }
    let again = render(name, &token, &api, ctx).await?;
    let Duty::Wait(time) = duty else {
        return Ok(again);
    };
    Ok(again.min(time))
}

fn malformed(name: &str, error: &Malformed) -> Duration {
    tracing::warn!(secret = name, problem = %error, "Secret is no token's");
    REFRESH
}

async fn delete(api: &Api<Secret>, secret: &Secret) -> Result<Duration, Error> {
    match apply::delete(api, &secret.metadata).await {
        Ok(()) => Ok(REFRESH),
        // Another replica was quicker, or it is a new one of the same name.
        Err(error) if is_missing(&error) || is_conflict(&error) => Ok(SOON),
        Err(error) => Err(Error::Write(error)),
    }
}

/// Makes the payload, keeps it, and says in the Secret how it went.
async fn render(
    name: &str,
    token: &Token,
    api: &Api<Secret>,
    ctx: &Context,
) -> Result<Duration, Error> {
    let begun = Instant::now();
    let facts = match read::facts(&ctx.client, &ctx.namespace).await {
        Ok(mut facts) => {
            facts.taints.clone_from(&token.taints);
            facts
        }
        Err(error) => {
            tell(
                name,
                token,
                api,
                ("ControlPlanePending", &chain(&error)),
                None,
            )
            .await?;
            return Ok(SOON);
        }
    };
    match payload::render(&facts, &token.config) {
        Ok(ignition) => {
            let payload = Bytes::from(ignition.to_string());
            let entry = Entry {
                secret: name.to_owned(),
                pool: token.pool.clone(),
                payload: payload.clone(),
            };
            ctx.cache.put(&[&token.current, &token.before], &entry);
            ctx.metrics.cached.inc();
            ctx.metrics
                .generation
                .observe(begun.elapsed().as_secs_f64());
            let message = "Payload generated successfully";
            tell(name, token, api, (AS_EXPECTED, message), Some(&payload)).await?;
        }
        Err(error) => {
            ctx.cache.forget(name);
            let message = error.to_string();
            tell(name, token, api, ("InvalidConfig", &message), None).await?;
        }
    }
    Ok(REFRESH)
}

async fn tell(
    name: &str,
    token: &Token,
    api: &Api<Secret>,
    (reason, message): (&str, &str),
    payload: Option<&[u8]>,
) -> Result<(), Error> {
    let Some(change) = token.verdict(reason, message, payload) else {
        return Ok(());
    };
    tracing::info!(secret = name, reason, version = token.version, "Payload");
    patch(api, name, &change).await
}

async fn patch(api: &Api<Secret>, name: &str, change: &Value) -> Result<(), Error> {
    let params = PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let patched = api
        .patch_metadata(name, &params, &Patch::Merge(change))
        .await;
    patched.map(drop).map_err(Error::Write)
}

fn random() -> Result<[u8; 16], Error> {
    let mut bytes = [0; 16];
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let filled = provider.secure_random.fill(&mut bytes);
    filled.map_err(|_| Error::Random)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
