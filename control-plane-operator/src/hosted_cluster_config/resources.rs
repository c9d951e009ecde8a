//! Objects in the hosted cluster.
//!
//! A pass builds the [desired objects](desired) of one step after the other, compares them with watched objects, and
//! writes what differs. Without a change it sends no request. An object that fails does not prevent the others.

mod cache;
pub mod desired;
mod endpoints;
mod own;
mod sources;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use api::conditions::{ClusterCondition, Status};
use control_plane_component::{Objects, Release};
use jiff::Timestamp;
use payload::{PullSecret, Releases};
use serde_json::Value;
use support::error::chain;

use super::Args;
use super::context::Context;
use super::control_plane::{self, DesiredCondition};
use super::error::Error;
use crate::hosted_control_plane::is_paused;
pub(super) use cache::GuestCache;
use cache::Served;
use desired::{Guest, Input, LEGACY, Mode, Object, STEPS, Settings, Step, WriteError, Writer};
pub(super) use sources::{Sources, Writers};

/// Steps that do not run yet, and why.
const NOT_YET: [(&str, &str); 11] = [
    (
        "API server endpoints",
        "nodes without a local proxy reach the API server at its published address",
    ),
    (
        "kubeadmin",
        "the bcrypt hash of the password is not available",
    ),
    (
        "konnectivity agent",
        "the API server has no tunnel to nodes",
    ),
    ("connection checker", "it reports on the tunnel"),
    // An APIService without a server makes the deletion of namespaces wait.
    ("aggregated APIs", "their servers are only rendered"),
    ("metrics forwarder", "the metrics proxy is only rendered"),
    ("OLM", "its operators are only rendered"),
    ("storage", "the storage operator is only rendered"),
    ("KubeVirt CSI driver", "its controller is only rendered"),
    ("cloud webhooks", "pods would wait for them"),
    (
        "global pull secret",
        "the program of its DaemonSet does not exist",
    ),
];

/// What the controller has besides the clients.
pub(super) struct Resources {
    pub(super) cache: GuestCache,
    pub(super) sources: Sources,
    writer: Writer,
    releases: Releases,
    settings: Settings,
    /// Versions of the release, known without reading it.
    versions: Release,
    is_legacy_deleted: AtomicBool,
}

/// The state of one pass.
struct Pass<'a> {
    resources: &'a Resources,
    hcp: &'a Value,
    release: &'a Release,
    objects: &'a Objects,
    random: &'a [u8; 96],
    now: Timestamp,
    guest: Guest,
    errors: Vec<Error>,
}

// === impl Resources ===

impl Resources {
    pub(super) fn new(
        args: &Args,
        guest: &kube::Client,
        sources: Sources,
        releases: Releases,
        manager: &'static str,
    ) -> Self {
        let variable = |name: &str| std::env::var(name).unwrap_or_default();
        let versions = Release {
            pull_spec: variable("OPERATE_ON_RELEASE_IMAGE"),
            version: variable("OPENSHIFT_RELEASE_VERSION"),
            component_versions: [("kubernetes".to_owned(), variable("KUBERNETES_VERSION"))].into(),
            ..Release::default()
        };
        let address = |host: &Option<String>, port| (host.clone().unwrap_or_default(), port);
        let settings = Settings {
            konnectivity: address(
                &args.konnectivity_address,
                args.konnectivity_port.unwrap_or_default(),
            ),
            oauth: address(&args.oauth_address, args.oauth_port.unwrap_or_default()),
            own_image: variable("HOSTED_CLUSTER_CONFIG_OPERATOR_IMAGE"),
            ..Settings::default()
        };
        Self {
            cache: GuestCache::new(guest.clone()),
            sources,
            writer: Writer::new(guest.clone(), manager),
            releases,
            settings,
            versions,
            is_legacy_deleted: AtomicBool::new(false),
        }
    }

    /// The settings with the current content of files.
    fn settings(&self, ctx: &Context) -> Result<Settings, Error> {
        let read = |file: &Option<std::path::PathBuf>| match file {
            None => Ok(String::new()),
            Some(file) => std::fs::read_to_string(file).map_err(|error| Error::Form {
                object: file.display().to_string(),
                problem: error.to_string(),
            }),
        };
        Ok(Settings {
            initial_ca: read(&ctx.initial_ca)?,
            signer_ca: read(&ctx.signer_ca)?,
            ..self.settings.clone()
        })
    }

    /// The release of the hosted cluster. If it cannot be read, its images are unknown.
    async fn release(&self, hcp: &Value, objects: &Objects) -> (Release, Option<Error>) {
        let image = hcp["spec"]["releaseImage"].as_str().unwrap_or_default();
        let failed = |problem: String| {
            let object = format!("release {image}");
            (self.versions.clone(), Some(Error::Form { object, problem }))
        };
        let name = hcp["spec"]["pullSecret"]["name"]
            .as_str()
            .unwrap_or_default();
        let Some(secret) = objects.secret_value(name, ".dockerconfigjson") else {
            return failed(format!("Secret {name} has no key .dockerconfigjson"));
        };
        let secret = match PullSecret::parse(&secret) {
            Ok(secret) => secret,
            Err(error) => return failed(error.to_string()),
        };
        match self.releases.for_user().get(image, &secret).await {
            Ok(release) => (Release::from(&*release), None),
            Err(error) => failed(chain(&error)),
        }
    }
}

/// Applies the objects, and reports the result in a condition of the HostedControlPlane.
pub(super) async fn pass(ctx: &Context) -> Result<(), Error> {
    let Some(object) = ctx.control_plane().await? else {
        return Ok(());
    };
    if object.metadata.deletion_timestamp.is_some() {
        // The cluster is being deleted.
        return Ok(());
    }
    if control_plane::typed(&object).is_ok_and(|hcp| is_paused(&hcp, Timestamp::now())) {
        return Ok(());
    }
    let done = apply(ctx, &object).await;
    let desired = condition(&done);
    let generation = object.metadata.generation;
    control_plane::write(&ctx.control_planes(), &object, |status| {
        control_plane::set(
            status,
            std::slice::from_ref(&desired),
            generation,
            Timestamp::now(),
        );
    })
    .await?;
    done
}

fn condition(done: &Result<(), Error>) -> DesiredCondition {
    let (status, reason, message) = match done {
        Ok(()) => (
            Status::True,
            "AsExpected",
            "All objects of the hosted cluster are applied".to_owned(),
        ),
        Err(error) => (Status::False, "ReconcileError", limited(chain(error))),
    };
    DesiredCondition {
        type_: ClusterCondition::ConfigOperatorReconciliationSucceeded,
        status,
        reason,
        message,
    }
}

/// The message in the length that the condition may have.
fn limited(message: String) -> String {
    const LENGTH: usize = 1024;
    if message.len() <= LENGTH {
        return message;
    }
    let end = (0..=LENGTH - 3)
        .rev()
        .find(|at| message.is_char_boundary(*at));
    format!("{}...", &message[..end.unwrap_or(0)])
}

/// Applies all objects; a failure does not stop the others, and all failures are reported.
async fn apply(ctx: &Context, object: &kube::api::DynamicObject) -> Result<(), Error> {
    let hcp = control_plane::typed(object)?;
    let value = serde_json::to_value(object).map_err(|error| Error::Form {
        object: "the HostedControlPlane".to_owned(),
        problem: error.to_string(),
    })?;
    let resources = &ctx.resources;
    resources.cache.wait_until_listed().await?;
    let objects = resources.sources.objects().await?;
    let settings = resources.settings(ctx)?;
    let (release, failed) = resources.release(&value, &objects).await;
    let mut pass = Pass {
        resources,
        hcp: &value,
        release: &release,
        objects: &objects,
        random: &random()?,
        now: Timestamp::now(),
        guest: resources.cache.snapshot(),
        errors: failed.into_iter().collect(),
    };
    // Objects that nodes need to join come first.
    pass.write_all(own::objects(ctx.node_clients)).await;
    if let Err(error) = apply_endpoints(ctx, &hcp).await {
        pass.errors.push(error);
    }
    for step in STEPS {
        if NOT_YET.iter().all(|(name, _)| *name != step.name) {
            pass.run(step, &settings).await;
        }
    }
    pass.delete_legacy(&settings).await;
    match pass.errors.len() {
        0 => Ok(()),
        1 => Err(pass.errors.remove(0)),
        _ => Err(Error::Several(pass.errors)),
    }
}

fn random() -> Result<[u8; 96], Error> {
    let mut bytes = [0; 96];
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    match provider.secure_random.fill(&mut bytes) {
        Ok(()) => Ok(bytes),
        Err(_) => Err(Error::waiting("random bytes")),
    }
}

async fn apply_endpoints(
    ctx: &Context,
    hcp: &api::hypershift::v1beta1::HostedControlPlane,
) -> Result<(), Error> {
    let endpoint = endpoints::ApiEndpoint::of(hcp).await?;
    ctx.applier.apply(&endpoint.slice()).await?;
    Ok(())
}

// === impl Pass ===

impl Pass<'_> {
    /// Builds and writes the objects of a step.
    async fn run(&mut self, step: Step, settings: &Settings) {
        let mut desired = step.build(&self.input(settings));
        if self.read_unknown(&desired.objects).await {
            desired = step.build(&self.input(settings));
        }
        self.errors
            .extend(desired.errors.into_iter().map(Error::Desired));
        self.write_all(desired.objects).await;
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

    async fn write_all(&mut self, objects: Vec<Object>) {
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
    async fn delete_legacy(&mut self, settings: &Settings) {
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

#[cfg(test)]
mod tests;
