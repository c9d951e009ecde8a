//! Keeps the signer, the bundle and the client certificate of each class, and the bundle of both.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use api::hypershift::v1beta1::HostedControlPlane;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::api::ApiResource;
use serde_json::json;
use support::apply::Applier;
use support::controller::{Action, Failure, ObjectKey, Reconciler};
use support::error::chain;

use super::super::class::{Class, TOTAL_CLIENT_CA};
use super::super::issue::{self, Pair, Subject};
use super::super::objects::{self, Kind, Meta};
use super::super::rotation::{Lifetime, Observed, Step};
use super::super::x509::{self, Certificate};
use super::{Context, Error, MANAGER, now};
use crate::random;

/// A pass without a change.
const RESYNC: Duration = Duration::from_mins(1);
/// Steps of a pass: signer, bundle, client certificate, and that nothing is left.
const STEPS: usize = 4;
const ADMINISTRATORS: &str = "system:masters";
const ALPHABET: &[u8; 62] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
const SUFFIX: usize = 16;
/// Condition of the HostedControlPlane: whether the bundle of both classes cannot be written.
const TARGET: &str = "TargetConfigControllerDegraded";

/// Reconciles a class, or the bundle of both.
pub(in super::super) struct Controller {
    pub(super) context: Context,
    conditions: Mutex<BTreeMap<&'static str, Condition>>,
}

/// The live objects of a class.
struct Live {
    signer: Option<Secret>,
    bundle: Option<ConfigMap>,
    client: Option<Secret>,
}

/// One key for each class, and one for the bundle of both.
pub(in super::super) fn keys(namespace: &str) -> Vec<ObjectKey> {
    let classes = Class::ALL.map(Class::name).into_iter();
    classes
        .chain([TOTAL_CLIENT_CA])
        .map(|name| ObjectKey::new(namespace, name))
        .collect()
}

// === impl Controller ===

impl Controller {
    pub(in super::super) fn new(context: Context, hcp: &HostedControlPlane) -> Self {
        let status = hcp.status.as_ref();
        let found = status.into_iter().flat_map(|status| &status.conditions);
        let types = Class::ALL.map(Class::condition).into_iter().chain([TARGET]);
        let conditions = types.filter_map(|type_| {
            let found = found.clone().find(|condition| condition.type_ == type_)?;
            Some((type_, found.clone()))
        });
        Self {
            conditions: Mutex::new(conditions.collect()),
            context,
        }
    }

    async fn class(&self, class: Class) -> Result<Action, Error> {
        for _ in 0..STEPS {
            let now = now();
            let cached = self.context.observed(class);
            if let Step::Keep(due) = cached.plan(self.context.lifetimes, now) {
                return Ok(Action::requeue(until(due, now)));
            }
            // Watches may be behind, so what is replaced is read first.
            let live = self.context.live(class).await?;
            match live.observed().plan(self.context.lifetimes, now) {
                Step::Keep(_) if live.is_labelled() => break,
                Step::Keep(_) => self.context.label(class, &live).await?,
                Step::Signer(reason) => {
                    self.context.issue_signer(class, &live, reason, now).await?
                }
                Step::Bundle(bundle) => self.context.write_bundle(class, &live, &bundle).await?,
                Step::Client(reason) => {
                    self.context.issue_client(class, &live, reason, now).await?
                }
            }
        }
        // The cache follows.
        Ok(Action::requeue(Duration::from_secs(1)))
    }

    /// Writes the condition of a key if it changes.
    async fn report(&self, type_: &'static str, problem: Option<&str>) {
        let (status, reason, message) = match problem {
            None => ("False", "AsExpected", "All is well"),
            Some(problem) => ("True", "RotationError", problem),
        };
        let mut condition = Condition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: message.to_owned(),
            observed_generation: None,
            last_transition_time: Time(now()),
        };
        let conditions: Vec<_> = {
            let mut known = self
                .conditions
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            if let Some(found) = known.get(type_) {
                if (&found.status, &found.message) == (&condition.status, &condition.message) {
                    return;
                }
                if found.status == condition.status {
                    condition.last_transition_time = found.last_transition_time.clone();
                }
            }
            known.insert(type_, condition);
            known.values().cloned().collect()
        };
        let context = &self.context;
        let object = json!({
            "metadata": { "name": context.owner.name, "namespace": context.namespace },
            "status": { "conditions": conditions },
        });
        let resource = ApiResource::erase::<HostedControlPlane>(&());
        let applier = Applier::new(context.client.clone(), MANAGER);
        if let Err(error) = applier.apply_status(&resource, object).await {
            // Unknown, so that the next pass writes it.
            self.conditions
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .remove(type_);
            tracing::debug!(error = chain(&error), "Failed to update status");
        }
    }
}

fn until(due: Timestamp, now: Timestamp) -> Duration {
    let left = Duration::try_from(due.duration_since(now)).unwrap_or_default();
    left.clamp(Duration::from_secs(1), RESYNC)
}

fn condition(key: &ObjectKey) -> &'static str {
    Class::parse(&key.name).map_or(TARGET, Class::condition)
}

impl Reconciler for Controller {
    type Error = Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, Error> {
        let action = match Class::parse(&key.name) {
            Some(class) => self.class(class).await?,
            None => self.context.write_total().await?,
        };
        self.report(condition(key), None).await;
        Ok(action)
    }

    async fn failed(&self, key: &ObjectKey, failure: &Failure<Error>) {
        if failure.retry() == support::reconcile::Retry::Backoff {
            self.report(condition(key), Some(&failure.to_string()))
                .await;
        }
    }
}

// === impl Context ===

impl Context {
    /// The objects of a class, as they are cached.
    pub(in super::super) fn observed(&self, class: Class) -> Observed {
        Observed {
            signer: objects::stored(self.cache.secret(&class.signer()).as_deref()),
            bundle: objects::bundle(self.cache.bundle(&class.bundle()).as_deref()),
            client: objects::stored(self.cache.secret(&class.client()).as_deref()),
        }
    }

    /// The trusted signers of both classes, as they are cached.
    pub(in super::super) fn total(&self) -> Vec<Certificate> {
        objects::bundle(self.cache.total().as_deref())
    }

    async fn live(&self, class: Class) -> Result<Live, Error> {
        Ok(Live {
            signer: self.get(&class.signer()).await?,
            bundle: self.get(&class.bundle()).await?,
            client: self.get(&class.client()).await?,
        })
    }

    async fn issue_signer(
        &self,
        class: Class,
        live: &Live,
        reason: &str,
        now: Timestamp,
    ) -> Result<(), Error> {
        let Lifetime { validity, refresh } = self.lifetimes.signer;
        let secret = class.signer();
        let name = format!("{}_{secret}@{}", self.namespace, now.as_second());
        let common_name = name.clone();
        let made = tokio::task::spawn_blocking(move || issue::signer(&common_name, validity, now));
        let meta = Meta {
            kind: Kind::Signer,
            name: &secret,
            issuer: &name,
            refresh,
            description: "Signer of break-glass certificates",
        };
        self.store(live.signer.as_ref(), meta, &made.await??, reason)
            .await
    }

    async fn issue_client(
        &self,
        class: Class,
        live: &Live,
        reason: &str,
        now: Timestamp,
    ) -> Result<(), Error> {
        let Some(signer) = objects::stored(live.signer.as_ref()).pair else {
            return Ok(());
        };
        let Lifetime { validity, refresh } = self.lifetimes.client;
        let secret = class.client();
        let issuer = signer.certificate.common_name.clone();
        let name = format!("{}{}", class.user_prefix(), text(SUFFIX)?);
        let subject = Subject::user(&name, Some(&text(SUFFIX)?), Some(ADMINISTRATORS));
        let made = tokio::task::spawn_blocking(move || {
            issue::client(&signer, &subject, now + validity, now)
        });
        let meta = Meta {
            kind: Kind::Client,
            name: &secret,
            issuer: &issuer,
            refresh,
            description: "Break-glass certificate of an administrator",
        };
        self.store(live.client.as_ref(), meta, &made.await??, reason)
            .await
    }

    async fn store(
        &self,
        existing: Option<&Secret>,
        meta: Meta<'_>,
        made: &Pair,
        reason: &str,
    ) -> Result<(), Error> {
        let secret = objects::secret(existing, meta, made, &self.owner);
        self.write(&secret).await?;
        tracing::info!(secret = meta.name, reason, "Issued certificate");
        Ok(())
    }

    async fn write_bundle(
        &self,
        class: Class,
        live: &Live,
        bundle: &[Certificate],
    ) -> Result<(), Error> {
        let name = class.bundle();
        let config_map = objects::config_map(live.bundle.as_ref(), &name, bundle, &self.owner);
        self.write(&config_map).await?;
        tracing::info!(
            config_map = name,
            certificates = bundle.len(),
            "Updated bundle"
        );
        Ok(())
    }

    /// Restores the labels by which objects are watched.
    async fn label(&self, class: Class, live: &Live) -> Result<(), Error> {
        for (secret, kind) in [(&live.signer, Kind::Signer), (&live.client, Kind::Client)] {
            if let Some(secret) = secret
                .as_ref()
                .filter(|secret| !objects::is_labelled(&secret.metadata))
            {
                self.write(&objects::labelled(secret, kind)).await?;
            }
        }
        if let Some(bundle) = live
            .bundle
            .as_ref()
            .filter(|bundle| !objects::is_labelled(&bundle.metadata))
        {
            let certificates = objects::bundle(Some(bundle));
            self.write(&objects::config_map(
                Some(bundle),
                &class.bundle(),
                &certificates,
                &self.owner,
            ))
            .await?;
        }
        Ok(())
    }

    /// Writes the bundle of both classes.
    async fn write_total(&self) -> Result<Action, Error> {
        let bundles = Class::ALL.map(|class| self.observed(class).bundle);
        if x509::union(&bundles) == self.total() {
            return Ok(Action::requeue(RESYNC));
        }
        let mut bundles = Vec::new();
        for class in Class::ALL {
            bundles.push(objects::bundle(self.get(&class.bundle()).await?.as_ref()));
        }
        let desired = x509::union(&bundles);
        let live: Option<ConfigMap> = self.get(TOTAL_CLIENT_CA).await?;
        if live.is_none() || objects::bundle(live.as_ref()) != desired {
            let config_map =
                objects::config_map(live.as_ref(), TOTAL_CLIENT_CA, &desired, &self.owner);
            self.write(&config_map).await?;
            tracing::info!(
                config_map = TOTAL_CLIENT_CA,
                certificates = desired.len(),
                "Updated bundle"
            );
        }
        // The cache follows.
        Ok(Action::requeue(RESYNC))
    }
}

fn text(length: usize) -> Result<String, Error> {
    random::text(ALPHABET, length, &mut random::fill).ok_or(Error::Random)
}

// === impl Live ===

impl Live {
    fn observed(&self) -> Observed {
        Observed {
            signer: objects::stored(self.signer.as_ref()),
            bundle: objects::bundle(self.bundle.as_ref()),
            client: objects::stored(self.client.as_ref()),
        }
    }

    fn is_labelled(&self) -> bool {
        let secrets = [&self.signer, &self.client].into_iter().flatten();
        let mut all = secrets
            .map(|secret| &secret.metadata)
            .chain(self.bundle.iter().map(|it| &it.metadata));
        all.all(objects::is_labelled)
    }
}

#[cfg(test)]
mod tests;
