//! Objects in the hosted cluster.
//!
//! A pass builds the [desired objects](desired) of one step after the other, compares them with watched objects, and
//! writes what differs. Without a change it sends no request. An object that fails does not prevent the others.

mod authentication;
mod cache;
mod controllers;
pub mod desired;
mod kubeadmin;
mod observed;
mod own;
mod pass;
mod sources;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use api::conditions::{ClusterCondition, Status};
use api::hypershift::v1beta1::HostedControlPlane;
use control_plane_component::{Objects, Release};
use jiff::Timestamp;
use payload::{PullSecret, Releases};
use serde_json::Value;
use support::error::chain;

use super::Args;
use super::context::Context;
use super::control_plane::{self, DesiredCondition, limited};
use super::error::Error;
use crate::components::catalogs::{Catalog, index};
use crate::hosted_control_plane::is_paused;
pub(super) use cache::GuestCache;
use desired::{STEPS, Settings, Writer};
use kubeadmin::PasswordHash;
use pass::Pass;
pub(super) use sources::{Sources, Writers};

/// The longest message of the condition, in bytes.
const MESSAGE: usize = 1024;

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
    password_hash: PasswordHash,
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
            password_hash: PasswordHash::default(),
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
        Err(error) => (
            Status::False,
            "ReconcileError",
            limited(&chain(error), MESSAGE),
        ),
    };
    DesiredCondition {
        type_: ClusterCondition::ConfigOperatorReconciliationSucceeded,
        status,
        reason,
        message,
    }
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
    let mut settings = resources.settings(ctx)?;
    settings.catalog_images = catalog_images(&hcp, &resources.versions.version);
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
    settings.kubeadmin_hash = pass.password_hash().await;
    // Objects that nodes need to join come first.
    pass.write_all(own::objects(ctx.node_clients)).await;
    for step in STEPS {
        pass.run(step, &settings).await;
    }
    pass.write_password_hash(ctx, settings.kubeadmin_hash.as_deref())
        .await;
    pass.delete_legacy(&settings).await;
    let observed = observed::apply(ctx, object, &resources.cache, &pass.guest, &objects).await;
    pass.errors.extend(observed);
    let selected = controllers::apply(ctx, &value, &pass.guest, &objects).await;
    let reported = authentication::report(ctx, object, &pass.guest).await;
    pass.errors
        .extend([selected, reported].into_iter().filter_map(Result::err));
    ctx.metrics.report(&pass.guest);
    match pass.errors.len() {
        0 => Ok(()),
        1 => Err(pass.errors.remove(0)),
        _ => Err(Error::Several(pass.errors)),
    }
}

/// Images of the catalogs that run in the hosted cluster. They are assumed to exist: only its nodes may reach them.
fn catalog_images(hcp: &HostedControlPlane, version: &str) -> BTreeMap<String, String> {
    let image = |catalog| index::candidates(hcp, version, catalog).into_iter().next();
    let images = Catalog::ALL.into_iter().filter_map(|catalog| {
        let image = image(catalog)?;
        Some((catalog.name().to_owned(), image))
    });
    images.collect()
}

fn random() -> Result<[u8; 96], Error> {
    let mut bytes = [0; 96];
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    match provider.secure_random.fill(&mut bytes) {
        Ok(()) => Ok(bytes),
        Err(_) => Err(Error::waiting("random bytes")),
    }
}

#[cfg(test)]
mod tests;
