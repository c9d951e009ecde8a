//! Releases from registries, each read once.
//!
//! ```text
//! get ─┬─ read before, and still valid ──────────────────────────────> release
//!      ├─ without a tenant: read ─────────────────────────────────────> release, or an error
//!      └─ for a tenant: tenants.rs waits briefly for read, in the background
//!             └─ in progress, slow or unreachable: what was read before, else the error
//! read: find the digest (mirrors in order) ── flights.rs ──> contents of that digest ── flights.rs ──> memory.rs
//! ```

mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use api::hypershift::v1beta1::node_pool::Arch;
use sha2::{Digest as _, Sha256};

use crate::contents::Contents;
use crate::error::{Error, Reason};
use crate::limits::Limits;
use crate::memory::Held;
use crate::mirrors::{Mirrors, Overrides};
use crate::pull_secret::PullSecret;
use crate::reference::{Digest, Reference};
use crate::registry::InvalidAuthorities;
use crate::release::Release;
use crate::tenants::Question;
use source::{Resolved, Source};

/// The owner of what is read for no tenant.
const OPERATOR: &str = "";

type Labels = BTreeMap<String, String>;

/// How releases are read.
#[derive(Debug, Clone)]
pub struct Options {
    /// Registries without TLS, by host and port.
    pub plain_http: BTreeSet<String>,
    /// More certificate authorities to trust, in PEM.
    pub ca_bundle: Option<Vec<u8>>,
    /// Where releases are stored for the next start.
    pub directory: Option<PathBuf>,
    /// How long the digest of a tag, and that a pull secret may read it, stay valid.
    pub believed: Duration,
    /// Mirrors of every cluster's images.
    pub mirrors: Mirrors,
    /// Registries that are replaced.
    pub overrides: Overrides,
    /// Which image of a list for several architectures is read.
    pub arch: Arch,
    /// Limits of time, rate, concurrency and memory.
    pub limits: Limits,
}

/// Reads releases. Cheap to clone: all clones share what they have read.
#[derive(Debug, Clone)]
pub struct Releases {
    source: Arc<Source>,
    mirrors: Arc<Mirrors>,
    overrides: Arc<Overrides>,
    tenant: Option<Arc<str>>,
}

/// A question to registries, with the credentials as a hash.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Query {
    places: Vec<Reference>,
    credentials: [u8; 32],
}

/// A release with the names that a caller sees.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct View {
    image: String,
    digest: Digest,
    mirror: Option<String>,
    overrides: Arc<Overrides>,
}

// === impl Options ===

impl Default for Options {
    fn default() -> Self {
        Self {
            plain_http: BTreeSet::new(),
            ca_bundle: None,
            directory: None,
            believed: Duration::from_mins(10),
            mirrors: Mirrors::default(),
            overrides: Overrides::default(),
            arch: if cfg!(target_arch = "aarch64") {
                Arch::Arm64
            } else {
                Arch::Amd64
            },
            limits: Limits::default(),
        }
    }
}

// === impl Releases ===

impl Releases {
    /// Sends no request yet.
    pub fn new(options: Options) -> Result<Self, InvalidAuthorities> {
        let mirrors = Arc::new(options.mirrors.clone());
        let overrides = Arc::new(options.overrides.clone());
        Ok(Self {
            source: Arc::new(Source::new(options)?),
            mirrors,
            overrides,
            tenant: None,
        })
    }

    /// Tries these mirrors first: those of one cluster.
    #[must_use]
    pub fn with_mirrors(&self, mirrors: &Mirrors) -> Self {
        Self {
            mirrors: Arc::new(mirrors.clone().then(&self.mirrors)),
            ..self.clone()
        }
    }

    /// Ignores overrides: releases as nodes see them.
    #[must_use]
    pub fn for_user(&self) -> Self {
        Self {
            overrides: Arc::default(),
            ..self.clone()
        }
    }

    /// Reads for a tenant: the namespace of a HostedCluster.
    ///
    /// Reads count against the tenant's limits and continue in the background. A caller waits for [`Limits::wait`] at most;
    /// then it gets what was read before, else the error of the last read, else [`Reason::InProgress`].
    #[must_use]
    pub fn for_tenant(&self, namespace: &str) -> Self {
        Self {
            tenant: Some(Arc::from(namespace)),
            ..self.clone()
        }
    }

    /// How much memory is held by what was read.
    pub fn held(&self) -> Held {
        self.source.held()
    }

    /// Reads a release. The layers of an image are read once for all; each pull secret has to show that it may read it.
    pub async fn get(&self, image: &str, pull_secret: &PullSecret) -> Result<Arc<Release>, Error> {
        let query = self.query(image, pull_secret)?;
        if let Some(release) = self.known(image, &query) {
            return Ok(release);
        }
        let Some(tenant) = self.tenant.clone() else {
            return self.read(image, query, pull_secret).await;
        };
        let read = || {
            let (this, query) = (self.clone(), query.clone());
            let pull_secret = self.source.pull_secrets.share(pull_secret);
            let image = image.to_owned();
            async move { this.read(&image, query, &pull_secret).await }
        };
        let question = Question {
            tenant,
            read: (image.to_owned(), query.clone()),
        };
        match self.source.reads.get(question, image, read).await {
            Err(error) if error.is_transient() => self.last_known(image, &query).ok_or(error),
            read => read,
        }
    }

    /// The labels of any image.
    pub async fn labels(
        &self,
        image: &str,
        pull_secret: &PullSecret,
    ) -> Result<Arc<BTreeMap<String, String>>, Error> {
        let query = self.query(image, pull_secret)?;
        let known = self.source.fresh(&query);
        if let Some(labels) = known.and_then(|it| self.source.labels.stale(&it.digest)) {
            return Ok(labels);
        }
        let Some(tenant) = self.tenant.clone() else {
            return self.read_labels(image, query, pull_secret).await;
        };
        let read = || {
            let (this, query) = (self.clone(), query.clone());
            let pull_secret = self.source.pull_secrets.share(pull_secret);
            let image = image.to_owned();
            async move { this.read_labels(&image, query, &pull_secret).await }
        };
        let question = Question {
            tenant,
            read: query.clone(),
        };
        match self.source.label_reads.get(question, image, read).await {
            Err(error) if error.is_transient() => {
                let last = self.source.last_known(&query);
                let labels = last.and_then(|it| self.source.labels.stale(&it.digest));
                labels.ok_or(error)
            }
            read => read,
        }
    }

    /// The digest of any image, and that the pull secret may read it.
    pub async fn digest(&self, image: &str, pull_secret: &PullSecret) -> Result<Digest, Error> {
        let query = self.query(image, pull_secret)?;
        if let Some(resolved) = self.source.fresh(&query) {
            return Ok(resolved.digest);
        }
        let Some(tenant) = self.tenant.clone() else {
            return self.find_digest(image, query, pull_secret).await;
        };
        let read = || {
            let (this, query) = (self.clone(), query.clone());
            let pull_secret = self.source.pull_secrets.share(pull_secret);
            let image = image.to_owned();
            async move { this.find_digest(&image, query, &pull_secret).await }
        };
        let question = Question {
            tenant,
            read: query.clone(),
        };
        match self.source.digest_reads.get(question, image, read).await {
            Err(error) if error.is_transient() => {
                let last = self.source.last_known(&query);
                last.map(|it| it.digest).ok_or(error)
            }
            read => read,
        }
    }

    fn owner(&self) -> Arc<str> {
        self.tenant.clone().unwrap_or_else(|| Arc::from(OPERATOR))
    }

    /// A release that needs no registry: it was read before, and the digest of its image is still valid.
    fn known(&self, image: &str, query: &Query) -> Option<Arc<Release>> {
        let resolved = self.source.fresh(query)?;
        self.remembered(image, &resolved)
    }

    /// What was read before, while the registry does not deliver.
    fn last_known(&self, image: &str, query: &Query) -> Option<Arc<Release>> {
        let resolved = self.source.last_known(query)?;
        let release = self.remembered(image, &resolved)?;
        tracing::warn!(image, "Registry does not respond: using its last response");
        Some(release)
    }

    fn remembered(&self, image: &str, resolved: &Resolved) -> Option<Arc<Release>> {
        let view = self.view(image, resolved);
        let release = self.source.releases.stale(&view);
        release.or_else(|| {
            let contents = self
                .source
                .stored_contents(&resolved.digest, &self.owner())?;
            Some(self.source.release(view, &contents, &self.owner()))
        })
    }

    async fn read(
        &self,
        image: &str,
        query: Query,
        pull_secret: &PullSecret,
    ) -> Result<Arc<Release>, Error> {
        let owner = self.owner();
        let resolved = self.source.find(query, pull_secret, &owner).await;
        let resolved = resolved.map_err(|error| error.about(image))?;
        let contents = self.source.contents(&resolved, pull_secret, &owner).await;
        let contents = contents.map_err(|error| error.about(image))?;
        Ok(self
            .source
            .release(self.view(image, &resolved), &contents, &owner))
    }

    async fn read_labels(
        &self,
        image: &str,
        query: Query,
        pull_secret: &PullSecret,
    ) -> Result<Arc<Labels>, Error> {
        let owner = self.owner();
        let resolved = self.source.find(query, pull_secret, &owner).await;
        let resolved = resolved.map_err(|error| error.about(image))?;
        let labels = self.source.labels(resolved, pull_secret, &owner).await;
        labels.map_err(|error| error.about(image))
    }

    async fn find_digest(
        &self,
        image: &str,
        query: Query,
        pull_secret: &PullSecret,
    ) -> Result<Digest, Error> {
        let resolved = self.source.find(query, pull_secret, &self.owner()).await;
        let resolved = resolved.map_err(|error| error.about(image))?;
        Ok(resolved.digest)
    }

    fn query(&self, image: &str, pull_secret: &PullSecret) -> Result<Query, Error> {
        let places = self.places(image)?;
        let mut hash = Sha256::new();
        for place in &places {
            hash.update(pull_secret.fingerprint(place));
        }
        Ok(Query {
            credentials: hash.finalize().into(),
            places,
        })
    }

    /// Where an image may be: its mirrors, then the place that it names, each with its registry replaced.
    fn places(&self, image: &str) -> Result<Vec<Reference>, Error> {
        let named = self.overrides.apply(image);
        let named = named.parse::<Reference>().map_err(|error| {
            Error::new(image, Reason::InvalidReference, error.to_string()).caused_by(error)
        })?;
        let mirrors = self.mirrors.of_image(image).map_err(|error| {
            Error::new(image, Reason::TooManyMirrors, error.to_string()).caused_by(error)
        })?;
        // An invalid mirror is skipped: the image itself may still be readable.
        let mirrors = mirrors
            .iter()
            .map(|mirror| self.overrides.apply(mirror).parse());
        let mut places: Vec<Reference> = mirrors.flatten().collect();
        places.retain(|place| *place != named);
        places.push(named);
        Ok(places)
    }

    fn view(&self, image: &str, resolved: &Resolved) -> View {
        let place = resolved.place.to_string();
        View {
            image: image.to_owned(),
            mirror: (place != self.overrides.apply(image)).then_some(place),
            digest: resolved.digest.clone(),
            overrides: self.overrides.clone(),
        }
    }
}

// === impl View ===

impl View {
    fn of(&self, contents: &Contents) -> Release {
        let release = Release::new(&self.image, &contents.references, &self.overrides);
        Release {
            digest: self.digest.to_string(),
            mirror: self.mirror.clone(),
            architectures: contents.architectures,
            labels: contents.labels.clone(),
            ..release.with_boot_images(contents.boot_images.clone())
        }
    }
}
