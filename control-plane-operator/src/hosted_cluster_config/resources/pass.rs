//! One pass over the objects of the hosted cluster: builds the objects of each step, and writes what differs.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use control_plane_component::{Objects, Release};
use jiff::Timestamp;
use serde_json::Value;

use super::super::context::Context;
use super::super::error::Error;
use super::Resources;
use super::cache::Served;
use super::desired::{self, Guest, Input, LEGACY, Mode, Object, Settings, Step, WriteError};
use super::kubeadmin;
use crate::kubeadmin::SECRET as PASSWORD;

/// The state of one pass.
pub(super) struct Pass<'a> {
    pub(super) resources: &'a Resources,
    pub(super) hcp: &'a Value,
    pub(super) release: &'a Release,
    pub(super) objects: &'a Objects,
    pub(super) random: &'a [u8; 96],
    pub(super) now: Timestamp,
    pub(super) guest: Guest,
    pub(super) errors: Vec<Error>,
}

// === impl Pass ===

impl Pass<'_> {
    /// Builds and writes the objects of a step.
    pub(super) async fn run(&mut self, step: Step, settings: &Settings) {
        let mut desired = step.build(&self.input(settings));
        if self.read_unknown(&desired.objects).await {
            desired = step.build(&self.input(settings));
        }
        self.errors
            .extend(desired.errors.into_iter().map(Error::Desired));
        self.write_all(desired.objects).await;
    }

    /// The Secret with the password of `kubeadmin`.
    fn password(&self) -> Option<&Value> {
        self.objects.get("", "Secret", PASSWORD)
    }

    /// The hash of the password of `kubeadmin`, if there is a password.
    pub(super) async fn password_hash(&mut self) -> Option<String> {
        let found = self
            .resources
            .password_hash
            .of(self.password(), &self.guest);
        found.await.unwrap_or_else(|error| {
            self.errors.push(error);
            None
        })
    }

    /// Writes the hash to the Secret with the password, once it is in the hosted cluster.
    pub(super) async fn write_password_hash(&mut self, ctx: &Context, hash: Option<&str>) {
        let (Some(secret), Some(hash)) = (self.password(), hash) else {
            return;
        };
        if kubeadmin::is_due(secret, hash, &self.guest) {
            let written = kubeadmin::write_back(&ctx.management, &ctx.namespace, secret, hash);
            self.errors.extend(written.await.err());
        }
    }

    fn input<'a>(&'a self, settings: &'a Settings) -> Input<'a> {
        Input {
            hcp: self.hcp,
            release: self.release,
            sources: self.objects,
            guest: &self.guest,
            settings,
            random: self.random,
            now: self.now,
        }
    }

    /// Reads objects that are not watched: they do not exist, or do not have the label yet. Returns whether there are any.
    async fn read_unknown(&mut self, objects: &[Object]) -> bool {
        let mut is_any_found = false;
        for object in objects.iter().filter(|object| object.mode != Mode::Delete) {
            let key = object.key();
            if self.guest.get(&key).is_some() || !self.may_write(object) {
                continue;
            }
            // A failure is reported when the object is written.
            if let Ok(Some(found)) = self.resources.writer.read(&key).await {
                self.guest.insert(found);
                is_any_found = true;
            }
        }
        is_any_found
    }

    /// Whether the kind of an object is served, and its namespace exists.
    fn may_write(&self, object: &Object) -> bool {
        let key = object.key();
        let namespace = desired::Key::new("v1", "Namespace", "", &key.namespace);
        self.resources.cache.served(&key) == Served::Yes
            && (key.namespace.is_empty() || self.guest.get(&namespace).is_some())
    }

    pub(super) async fn write_all(&mut self, objects: Vec<Object>) {
        let mut failed = BTreeSet::new();
        for object in objects {
            if object.chain.is_some_and(|chain| failed.contains(chain)) {
                continue;
            }
            if let Err(error) = self.write(&object).await {
                failed.extend(object.chain);
                self.errors.push(error);
            }
        }
    }

    async fn write(&mut self, object: &Object) -> Result<(), Error> {
        let key = object.key();
        let cache = &self.resources.cache;
        match cache.served(&key) {
            Served::Yes if self.may_write(object) => {}
            Served::Yes => {
                cache.skip(&key, "its namespace does not exist yet");
                return Ok(());
            }
            Served::No => {
                cache.skip(&key, "its kind is not served");
                return Ok(());
            }
            Served::Unknown => {
                return Err(Error::waiting(format!(
                    "the initial list of kind {}",
                    key.kind
                )));
            }
        }
        match self
            .resources
            .writer
            .write(object, self.guest.get(&key))
            .await
        {
            Ok(Some(found)) => {
                cache.written(&found);
                self.guest.insert(found);
                Ok(())
            }
            Ok(None) => {
                self.guest.remove(&key);
                Ok(())
            }
            Err(WriteError::NotServed(_) | WriteError::NoNamespace(_)) => {
                cache.skip(
                    &key,
                    "its kind is not served, or its namespace does not exist",
                );
                Ok(())
            }
            Err(error) => Err(Error::Guest(error)),
        }
    }

    /// Deletes objects of earlier releases, once the hosted cluster has reached the release.
    pub(super) async fn delete_legacy(&mut self, settings: &Settings) {
        let is_done = &self.resources.is_legacy_deleted;
        let key = desired::Key::new("config.openshift.io/v1", "ClusterVersion", "", "version");
        let version = self
            .guest
            .get(&key)
            .map(|it| it["status"]["desired"]["version"].clone());
        let is_reached = version.is_some_and(|it| it == self.release.version.as_str());
        if is_done.load(Ordering::Relaxed) || !is_reached {
            return;
        }
        let objects = LEGACY.build(&self.input(settings)).objects;
        let mut is_complete = true;
        for object in objects {
            let writer = &self.resources.writer;
            let deleted = match writer.read(&object.key()).await {
                Ok(found) => writer.write(&object, found.as_ref()).await.map(drop),
                Err(error) => Err(error),
            };
            if let Err(error) = deleted {
                is_complete = false;
                self.errors.push(Error::Guest(error));
            }
        }
        is_done.store(is_complete, Ordering::Relaxed);
    }
}
