//! Renders the payload of each token, and rotates tokens.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ObjectReference, Secret};
use kube::Api;
use kube::api::{Patch, PatchParams};
use kube::core::PartialObjectMeta;
use kube::runtime::events::Recorder;
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::Value;
use support::apply;
use support::controller::{Action, DEADLINE, Manager, ObjectKey, Reconciler, Settings};
use support::error::chain;
use support::health::Check;
use support::reconcile::{Backoff, Report, Retry, client_reason, is_conflict, is_missing};
use support::shutdown;
use support::watch::watch_failed;

use super::cache::{Cache, Entry};
use super::metrics::Metrics;
use super::payload::{self, Facts};
use super::payload_programs::{Failure, Payload, Programs};
use super::read;
use super::token::{self, AS_EXPECTED, Made, Malformed, REASON, Token, TokenAction};

/// Field manager.
pub(super) const MANAGER: &str = "ignition-server";
/// How often payloads are rendered again, because their inputs are not watched.
const REFRESH_INTERVAL: Duration = Duration::from_mins(5);
/// Delay before missing inputs are read again.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// Settings of the token controller.
const SETTINGS: Settings = Settings {
    controller: "token",
    kind: "Secret",
    concurrency: 4,
    debounce: Duration::ZERO,
    deadline: DEADLINE,
};

type Meta = PartialObjectMeta<Secret>;

/// Dependencies of the controller.
pub(super) struct Context {
    pub(super) client: kube::Client,
    pub(super) namespace: String,
    pub(super) hosted_control_plane: Option<String>,
    pub(super) recorder: Recorder,
    pub(super) cache: Arc<Cache>,
    pub(super) metrics: Metrics,
    /// Makes payloads with the programs of releases that have them.
    pub(super) programs: Option<Arc<Programs>>,
}

/// A payload, and what is reported with it.
struct Generated {
    payload: Bytes,
    started: Instant,
    is_own: bool,
    is_due: bool,
}

/// Reconciling a Secret failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("failed to get the token Secret")]
    Read(#[source] kube::Error),
    #[error("failed to patch the token Secret")]
    Write(#[source] kube::Error),
    #[error("failed to generate random bytes for a token")]
    Random,
}

impl Report for Error {
    fn reason(&self) -> &'static str {
        match self {
            Self::Read(source) | Self::Write(source) => client_reason(source),
            Self::Random => "Internal",
        }
    }

    fn retry(&self) -> Retry {
        match self {
            Self::Write(error) if is_conflict(error) => Retry::AtOnce,
            Self::Read(_) | Self::Write(_) | Self::Random => Retry::Backoff,
        }
    }
}

impl Reconciler for Context {
    type Error = Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, Error> {
        reconcile(&key.name, self).await.map(Action::requeue)
    }

    fn events(&self, key: &ObjectKey) -> Option<(Recorder, ObjectReference)> {
        let secret = ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Secret".to_owned()),
            namespace: Some(key.namespace.clone()),
            name: Some(key.name.clone()),
            ..ObjectReference::default()
        };
        Some((self.recorder.clone(), secret))
    }
}

/// Runs the controller.
pub(super) async fn run(ctx: &Context, manager: &Manager, check: &Check) {
    let api: Api<Meta> = Api::namespaced(ctx.client.clone(), &ctx.namespace);
    let cache = Arc::clone(&ctx.cache);
    let events = watcher(api, watcher::Config::default())
        .backoff(Backoff::default())
        .inspect(move |event| {
            if let Ok(Event::Delete(gone)) = event {
                cache.forget(gone.metadata.name.as_deref().unwrap_or_default());
            }
            if event.is_ok() {
                check.pass();
            }
        })
        .touched_objects();
    let requests = events.filter_map(|event| {
        let key = match event {
            // Most Secrets of the namespace are not tokens.
            Ok(found) if token::is_token(&found.metadata) => Some(ObjectKey::of(&found.metadata)),
            Ok(_) => None,
            Err(error) => {
                failed(&error, check);
                None
            }
        };
        std::future::ready(key)
    });
    // It is aborted with the process, which is safe because each write is atomic.
    let (_signal, drain) = shutdown::channel();
    let ready = std::future::ready(());
    manager.run(SETTINGS, ctx, requests, ready, drain).await;
}

fn failed(error: &watcher::Error, check: &Check) {
    tracing::debug!(error = chain(error), "Failed to watch Secrets");
    if watch_failed(error) {
        check.fail(chain(error));
    }
}

/// Reconciles a Secret, and returns when to requeue it.
async fn reconcile(name: &str, ctx: &Context) -> Result<Duration, Error> {
    let api: Api<Secret> = Api::namespaced(ctx.client.clone(), &ctx.namespace);
    let found = api.get_opt(name).await.map_err(Error::Read)?;
    let Some(secret) = found.filter(|secret| token::is_token(&secret.metadata)) else {
        forget(name, ctx);
        return Ok(REFRESH_INTERVAL);
    };
    let now = Timestamp::now();
    let action = token::next_action(&secret.metadata, now);
    if action == TokenAction::Delete {
        forget(name, ctx);
        tracing::info!(name, "Deleted expired token");
        return delete(&api, &secret).await;
    }
    let token = match Token::read(secret) {
        Ok(token) => token,
        Err(error) => return Ok(malformed(name, &error)),
    };
    if action == TokenAction::Rotate {
        let change = token.rotation(&token::uuid(random()?), now);
        patch(&api, name, &change).await?;
        ctx.metrics.rotated.inc();
        tracing::info!(name, "Rotated token");
        // The payload is cached after the watch delivers the change.
        return Ok(RETRY_INTERVAL);
    }
    let mut again = render(name, &token, &api, ctx).await?;
    if token::is_outdated(&token.metadata) {
        // It is not updated any more, so what its payload waits for may never come.
        again = again.max(REFRESH_INTERVAL);
    }
    let TokenAction::Wait(time) = action else {
        return Ok(again);
    };
    Ok(again.min(time))
}

/// Drops all that is known about a token.
fn forget(name: &str, ctx: &Context) {
    ctx.cache.forget(name);
    if let Some(programs) = &ctx.programs {
        programs.forget(name);
    }
}

async fn facts(ctx: &Context) -> Result<Facts, read::Error> {
    let name = ctx.hosted_control_plane.as_deref();
    read::facts(&ctx.client, &ctx.namespace, name).await
}

fn malformed(name: &str, error: &Malformed) -> Duration {
    tracing::warn!(name, %error, "Skipping Secret that is not a token");
    REFRESH_INTERVAL
}

async fn delete(api: &Api<Secret>, secret: &Secret) -> Result<Duration, Error> {
    match apply::delete(api, &secret.metadata).await {
        Ok(()) => Ok(REFRESH_INTERVAL),
        // Another replica was faster, or the Secret was recreated.
        Err(error) if is_missing(&error) || is_conflict(&error) => Ok(RETRY_INTERVAL),
        Err(error) => Err(Error::Write(error)),
    }
}

/// Renders and caches the payload, and reports the result in the Secret.
async fn render(
    name: &str,
    token: &Token,
    api: &Api<Secret>,
    ctx: &Context,
) -> Result<Duration, Error> {
    let started = Instant::now();
    if let Some(programs) = &ctx.programs {
        if ctx.cache.get(&token.current).is_none() {
            // After a rotation machines have the new token at once, and programs may take minutes.
            ctx.cache.renew(name, &[&token.current, &token.previous]);
        }
        match programs.payload(name, token).await {
            Ok(Some(made)) => {
                let Payload { bytes, is_due } = made;
                let generated = Generated {
                    payload: bytes,
                    started,
                    is_own: false,
                    is_due,
                };
                return keep(name, token, api, ctx, generated).await;
            }
            // The release has none: this server renders the payload.
            Ok(None) => {}
            Err(failure) => {
                if failure.is_final {
                    ctx.cache.forget(name);
                } else {
                    ctx.cache.renew(name, &[&token.current, &token.previous]);
                }
                report(name, token, api, programs, &failure).await?;
                return Ok(failure.retry);
            }
        }
    }
    let facts = match facts(ctx).await {
        Ok(mut facts) => {
            facts.taints.clone_from(&token.taints);
            facts
        }
        Err(error) => {
            ctx.cache.renew(name, &[&token.current, &token.previous]);
            update_status(
                name,
                token,
                api,
                ("ControlPlanePending", &chain(&error)),
                None,
            )
            .await?;
            return Ok(RETRY_INTERVAL);
        }
    };
    match payload::render(&facts, &token.config) {
        Ok(ignition) => {
            let generated = Generated {
                payload: Bytes::from(ignition.to_string()),
                started,
                is_own: ctx.programs.is_some(),
                is_due: true,
            };
            keep(name, token, api, ctx, generated).await
        }
        Err(error) => {
            ctx.cache.forget(name);
            let message = error.to_string();
            update_status(name, token, api, ("InvalidConfig", &message), None).await?;
            Ok(REFRESH_INTERVAL)
        }
    }
}

/// Caches a payload, and reports it in the Secret.
async fn keep(
    name: &str,
    token: &Token,
    api: &Api<Secret>,
    ctx: &Context,
    generated: Generated,
) -> Result<Duration, Error> {
    let Generated {
        payload,
        started,
        is_own,
        is_due,
    } = generated;
    let entry = Entry {
        secret: name.to_owned(),
        pool: token.pool.clone(),
        payload: payload.clone(),
    };
    ctx.cache.put(&[&token.current, &token.previous], &entry);
    ctx.metrics.cached.inc();
    ctx.metrics
        .generation
        .observe(started.elapsed().as_secs_f64());
    let message = "Payload generated successfully";
    let made = Made {
        payload: &payload,
        is_own,
        is_due,
    };
    update_status(name, token, api, (AS_EXPECTED, message), Some(made)).await?;
    Ok(REFRESH_INTERVAL)
}

/// Reports why there is no payload. Other servers report about the same token, and do not always find the same: a
/// registry may respond to one of them only.
async fn report(
    name: &str,
    token: &Token,
    api: &Api<Secret>,
    programs: &Programs,
    failure: &Failure,
) -> Result<(), Error> {
    let (reason, message) = (failure.reason, failure.message.as_str());
    let reported = token.value(REASON);
    if failure.is_reported(&reported) {
        if !failure.is_known && programs.may_report(name) {
            tracing::warn!(name, reason, error = message, "Failed to make payload");
        }
        return Ok(());
    }
    let is_changed = token.status_patch(reason, message, None).is_some();
    let is_first = failure.is_news() || reported.is_empty();
    if is_changed && (is_first || programs.may_report(name)) {
        return update_status(name, token, api, (reason, message), None).await;
    }
    Ok(())
}

async fn update_status(
    name: &str,
    token: &Token,
    api: &Api<Secret>,
    (reason, message): (&str, &str),
    made: Option<Made<'_>>,
) -> Result<(), Error> {
    let Some(change) = token.status_patch(reason, message, made) else {
        return Ok(());
    };
    tracing::info!(
        name,
        reason,
        version = token.version,
        "Updated payload status"
    );
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
