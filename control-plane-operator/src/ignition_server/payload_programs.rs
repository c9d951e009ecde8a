//! Payloads that the release's own programs make: those of its machine-config-operator image.
//!
//! ```text
//! token, release, objects of the namespace ── inputs.rs, checked by hash ──> steps.rs ──> run.rs ──> payload
//! images ── payload::extract ──> programs and templates ────────────────────────────────────^
//! ```
//!
//! Releases whose image does not have these programs get a payload that this server renders itself. One payload is made
//! at a time, and only if its inputs have changed. A reconcile that is aborted does not abort the payload.

mod condition;
mod failure;
mod inputs;
mod run;
mod secrets;
mod served;
mod state;
mod steps;
mod taints;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use api::hypershift::v1beta1::HostedControlPlane;
use bytes::Bytes;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use kube::{Api, Resource as _};
use payload::extract::{Caps, Extracted, Pattern, Store};
use payload::{PullSecret, Release, Releases};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use support::error::chain;
use tokio::time::Instant;

use super::read;
use super::reconcile::MANAGER;
use super::token::{self, Token};
use condition::condition;
pub(super) use failure::Failure;
use inputs::{Expected, OS_STREAM, Objects};
use run::Surroundings;
use secrets::Secrets;
pub(super) use state::{Payload, State};
use steps::{BIN, Image, Inputs, NEWER, OPERATOR, PROGRAMS, REFERENCES, TEMPLATES};

/// What a reference to an image has that never changes.
const DIGEST: &str = "@sha256:";
/// Where an image says which operating system it is of.
const OS_RELEASE: &str = "usr/lib/os-release";

/// Makes payloads.
pub(super) struct Programs {
    pub(super) client: kube::Client,
    pub(super) namespace: String,
    pub(super) hosted_control_plane: Option<String>,
    pub(super) releases: Releases,
    /// Where programs are stored and run.
    pub(super) work_directory: PathBuf,
    /// The file with the FeatureGate.
    pub(super) feature_gate: PathBuf,
    pub(super) state: State,
}

/// What the payload of a token is made of.
struct Job {
    secret: String,
    release: String,
    token: Token,
}

/// The images of a release, and where to report about them.
struct Images<'a> {
    programs: &'a Programs,
    hcp: &'a HostedControlPlane,
    missing: Vec<&'static str>,
    release: Arc<Extracted>,
    operator: Arc<Extracted>,
    gates: Arc<Extracted>,
}

// === impl Programs ===

impl Programs {
    /// The payload of a token; nothing if its release has no programs that make it.
    pub(super) async fn payload(
        self: &Arc<Self>,
        secret: &str,
        token: &Token,
    ) -> Result<Option<Payload>, Failure> {
        let job = Job {
            secret: secret.to_owned(),
            release: token.value(token::RELEASE),
            token: token.clone(),
        };
        if job.release.is_empty() || job.is_decided() {
            return Ok(None);
        }
        let this = Arc::clone(self);
        let making = tokio::spawn(async move { this.make(job).await });
        let made = making.await;
        made.unwrap_or_else(|_| Err(Failure::pending("making the payload was interrupted")))
    }

    /// Drops what is known about a token that does not exist any more.
    pub(super) fn forget(&self, secret: &str) {
        self.state.forget(secret);
    }

    /// Whether a report about a token may replace another one now.
    pub(super) fn may_report(&self, secret: &str) -> bool {
        self.state.may_report(secret)
    }

    async fn make(&self, job: Job) -> Result<Option<Payload>, Failure> {
        let name = self.hosted_control_plane.as_deref();
        let hcp = read::control_plane(&self.client, &self.namespace, name).await?;
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        let key = payload::pull_secret::KEY;
        let pull_secret = read::secret(&secrets, &hcp.spec.pull_secret.name, key).await?;
        let credentials = PullSecret::parse(&pull_secret);
        let credentials = credentials.map_err(|error| Failure::invalid(error.to_string()))?;
        let release = self.releases.get(&job.release, &credentials).await;
        let Some(release) = job.needed(release.map_err(Failure::from))? else {
            return Ok(None);
        };
        let Some(image) = release.canonical.get(OPERATOR) else {
            return Ok(None);
        };
        // What was made already does not wait for the payload of another pool.
        if self.state.has(&job.secret) {
            let objects = self.objects(&job, &hcp, &pull_secret).await?;
            let inputs = self.inputs(&job, &release, &objects, false)?;
            if let Some(known) = self.state.known(&job.secret, &fingerprint(&inputs)) {
                return known.map(Some);
            }
        }
        let _turn = self.state.turn.lock().await;
        let operator = self.extract(image, &credentials, &patterns()).await;
        let Some(operator) = job.needed(operator)? else {
            return Ok(None);
        };
        if !operator.contains(&format!("{BIN}/{OPERATOR}")) {
            return Ok(None);
        }
        let objects = self.objects(&job, &hcp, &pull_secret).await?;
        let inputs = self.inputs(&job, &release, &objects, needs_newer(&operator)?)?;
        let fingerprint = fingerprint(&inputs);
        // It may have been made meanwhile.
        if let Some(known) = self.state.known(&job.secret, &fingerprint) {
            return known.map(Some);
        }
        let images = self
            .images(&job, &release, operator, &credentials, &hcp)
            .await?;
        let result = self.run(&inputs, &images).await;
        let made = self.state.remember(job.secret, fingerprint, result);
        made.map(Some)
    }

    /// The objects of the namespace, if they are those of the token.
    async fn objects(
        &self,
        job: &Job,
        hcp: &HostedControlPlane,
        pull_secret: &[u8],
    ) -> Result<Objects, Failure> {
        let pull_secret = pull_secret.to_vec();
        let objects = Objects::read(&self.client, &self.namespace, hcp, pull_secret).await?;
        objects.check(&Expected::of(&job.token))?;
        Ok(objects)
    }

    /// Everything that the programs are given.
    fn inputs(
        &self,
        job: &Job,
        release: &Release,
        objects: &Objects,
        is_newer: bool,
    ) -> Result<Inputs, Failure> {
        let path = &self.feature_gate;
        let feature_gate = fs::read_to_string(path).map_err(|error| {
            let path = path.display();
            Failure::pending(format!(
                "failed to read the FeatureGate from {path}: {error}"
            ))
        })?;
        let certificate = self.state.certificates.get(Timestamp::now());
        let certificate = certificate
            .ok_or_else(|| Failure::pending("failed to generate a certificate for the server"))?;
        let mirror = release.mirror.as_ref();
        Ok(Inputs {
            release_image: mirror.unwrap_or(&release.image).clone(),
            version: release.version.clone(),
            images: release.canonical.clone(),
            config: taints::with_taints(&job.token.config, &job.token.taints),
            bootstrap_kubeconfig: objects.bootstrap_kubeconfig.clone(),
            files: objects.files.clone(),
            pull_secret: objects.pull_secret.clone(),
            feature_gate,
            cloud_config: objects.cloud_config(&self.namespace),
            os_stream: job.token.value(OS_STREAM),
            certificate,
            is_newer,
        })
    }

    /// The files of all images.
    async fn images<'a>(
        &'a self,
        job: &Job,
        release: &Release,
        operator: Extracted,
        credentials: &PullSecret,
        hcp: &'a HostedControlPlane,
    ) -> Result<Images<'a>, Failure> {
        let mut missing = steps::required(&release.version);
        missing.retain(|tag| !release.canonical.contains_key(*tag));
        let (tag, program, _) = steps::gates(&release.version);
        let Some(gates) = release.canonical.get(tag) else {
            self.report(hcp, &missing).await;
            let version = &release.version;
            return Err(Failure::refused(format!(
                "release {version} has no image {tag}: use a release that is complete"
            )));
        };
        let references = [Pattern::file(REFERENCES)];
        let program = [Pattern::file(format!("{BIN}/{program}"))];
        Ok(Images {
            programs: self,
            hcp,
            missing,
            release: Arc::new(self.extract(&job.release, credentials, &references).await?),
            operator: Arc::new(operator),
            gates: Arc::new(self.extract(gates, credentials, &program).await?),
        })
    }

    async fn run(&self, inputs: &Inputs, images: &Images<'_>) -> Result<Bytes, Failure> {
        let directory = self.work_directory.join("run");
        let steps = steps::steps(inputs, &directory.to_string_lossy());
        let secrets = Secrets::of(inputs);
        let begun = Instant::now();
        let made = run::execute(&steps, &directory, images, &secrets).await;
        let seconds = begun.elapsed().as_secs_f64();
        match made {
            Ok(payload) => {
                let version = &inputs.version;
                tracing::info!(%version, seconds, "Made a payload with the programs of the release");
                Ok(Bytes::from(payload))
            }
            Err(error) if error.is_refusal() => Err(Failure::refused(error.to_string())),
            Err(error) => Err(Failure::interrupted(error.to_string())),
        }
    }

    async fn extract(
        &self,
        image: &str,
        credentials: &PullSecret,
        wanted: &[Pattern],
    ) -> Result<Extracted, Failure> {
        let store = Store::new(self.work_directory.join("images"), Caps::default());
        let extracted = self.releases.extract(image, credentials, wanted, &store);
        Ok(extracted.await?)
    }

    /// Sets the condition about images that the release does not have. A failure is logged: the next payload sets it.
    async fn report(&self, hcp: &HostedControlPlane, missing: &[&'static str]) {
        let Some(condition) = condition(hcp, missing, Timestamp::now()) else {
            return;
        };
        let name = hcp.metadata.name.as_deref().unwrap_or_default();
        let api: Api<HostedControlPlane> = Api::namespaced(self.client.clone(), &self.namespace);
        let status = json!({
            "apiVersion": HostedControlPlane::api_version(&()),
            "kind": HostedControlPlane::kind(&()),
            "metadata": { "name": name },
            "status": { "conditions": [condition] },
        });
        let params = PatchParams::apply(MANAGER).force();
        let patched = api
            .patch_status(name, &params, &Patch::Apply(&status))
            .await;
        if let Err(error) = patched {
            let error = chain(&error);
            tracing::warn!(
                error,
                "Failed to set condition IgnitionServerValidReleaseInfo"
            );
        }
    }
}

// === impl Job ===

impl Job {
    /// Whether this server has rendered a payload of this release for the token, because the release has no programs.
    fn is_own(&self) -> bool {
        self.token.value(token::OWN) == self.release
    }

    /// The same, and the release is always the same: no registry is needed, and none that is down stops the server.
    fn is_decided(&self) -> bool {
        self.is_own() && self.release.contains(DIGEST)
    }

    /// What was read from a registry; nothing if it cannot be read, and the release had no programs when it could.
    fn needed<T>(&self, read: Result<T, Failure>) -> Result<Option<T>, Failure> {
        match read {
            Err(failure) if self.is_own() => {
                let (secret, error) = (&self.secret, failure.message);
                tracing::warn!(secret, error, "Rendering a payload without the release");
                Ok(None)
            }
            read => read.map(Some),
        }
    }
}

// === impl Images ===

impl Images<'_> {
    fn of(&self, image: Image) -> &Arc<Extracted> {
        match image {
            Image::Release => &self.release,
            Image::Operator => &self.operator,
            Image::FeatureGates => &self.gates,
        }
    }
}

impl Surroundings for Images<'_> {
    fn below(&self, image: Image, directory: &str) -> Vec<String> {
        let paths = self.of(image).paths();
        let below = paths.filter(|path| {
            let rest = path.strip_prefix(directory);
            rest.is_some_and(|rest| rest.starts_with('/'))
        });
        below.map(str::to_owned).collect()
    }

    async fn take(&self, image: Image, path: &str, to: PathBuf) -> Result<bool, String> {
        let (extracted, path) = (Arc::clone(self.of(image)), path.to_owned());
        let copying = tokio::task::spawn_blocking(move || extracted.copy(&path, &to));
        let copied = copying.await.map_err(|error| chain(&error))?;
        copied.map_err(|error| chain(&error))
    }

    async fn report(&self) {
        self.programs.report(self.hcp, &self.missing).await;
    }
}

/// The files that are needed of the image with the programs.
fn patterns() -> Vec<Pattern> {
    let programs = PROGRAMS
        .into_iter()
        .flat_map(|name| ["", NEWER].map(|suffix| Pattern::file(format!("{BIN}/{name}{suffix}"))));
    let others = [Pattern::file(OS_RELEASE), Pattern::below(TEMPLATES)];
    programs.chain(others).collect()
}

/// Whether programs for a newer operating system than that of this image are tried first.
fn needs_newer(operator: &Extracted) -> Result<bool, Failure> {
    let system = operator.text(OS_RELEASE);
    let system = system.map_err(|error| Failure::pending(chain(&error)))?;
    let own = fs::read_to_string(Path::new("/").join(OS_RELEASE)).ok();
    Ok(is_newer(system.as_deref(), own.as_deref()))
}

/// Whether programs for release 9 of the operating system are tried first: the image has release 8, and this server runs
/// on release 9.
fn is_newer(image: Option<&str>, own: Option<&str>) -> bool {
    major(image) == Some("8") && major(own) == Some("9")
}

/// The release of an operating system.
fn major(release: Option<&str>) -> Option<&str> {
    let mut lines = release?.lines();
    let version = lines.find_map(|line| line.strip_prefix("VERSION_ID="))?;
    version.trim_matches('"').split('.').next()
}

/// Identifies inputs, but for the certificate: it is not in the payload.
fn fingerprint(inputs: &Inputs) -> [u8; 32] {
    let mut hash = Sha256::new();
    let mut add = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    for text in [
        inputs.release_image.as_str(),
        &inputs.version.to_string(),
        &inputs.config,
        &inputs.feature_gate,
        inputs.cloud_config.as_deref().unwrap_or_default(),
        &inputs.os_stream,
    ] {
        add(text.as_bytes());
    }
    add(&inputs.bootstrap_kubeconfig);
    add(&inputs.pull_secret);
    for map in [&inputs.images, &inputs.files] {
        add(&(map.len() as u64).to_le_bytes());
        for (key, value) in map {
            add(key.as_bytes());
            add(value.as_bytes());
        }
    }
    hash.finalize().into()
}
