//! What all readers of releases share: the client, what was read, and what is being read.
//!
//! Flights are keyed by place and credentials beside the digest: who reads from a slow mirror holds up only those who
//! read from the same mirror with the same credentials.

mod files;

use std::sync::Arc;
use std::time::Duration;

use api::hypershift::v1beta1::node_pool::Arch;
use tokio::time::timeout;

use super::{Labels, Options, Query, View};
use crate::contents::{Contents, Directory, FILES, Raw};
use crate::error::{Error, Reason};
use crate::flights::Flights;
use crate::limits::{Broken, Limits};
use crate::memory::{Held, Memory};
use crate::pull_secret::{InUse, PullSecret};
use crate::reference::{Digest, Reference};
use crate::registry::{Http, InvalidAuthorities, Session, slow};
use crate::release::Release;
use crate::tenants::Reads;

/// Where an image is.
#[derive(Debug, Clone)]
pub(super) struct Resolved {
    pub(super) place: Reference,
    pub(super) digest: Digest,
}

/// One place, with its digest, and the credentials for it.
type Place = (Reference, [u8; 32]);

pub(super) struct Source {
    http: Http,
    directory: Option<Directory>,
    believed: Duration,
    arch: Arch,
    limits: Limits,
    pub(super) reads: Reads<(String, Query), Arc<Release>>,
    pub(super) label_reads: Reads<Query, Arc<Labels>>,
    pub(super) digest_reads: Reads<Query, Digest>,
    pub(super) pull_secrets: InUse,
    resolved: Memory<Query, Resolved>,
    finding: Flights<Query, Resolved>,
    contents: Memory<Digest, Arc<Contents>>,
    reading: Flights<Place, Arc<Contents>>,
    pub(super) labels: Memory<Digest, Arc<Labels>>,
    labelling: Flights<Place, Arc<Labels>>,
    pub(super) releases: Memory<View, Arc<Release>>,
}

// === impl Source ===

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("Source");
        debug.field("http", &self.http).finish_non_exhaustive()
    }
}

impl Source {
    pub(super) fn new(options: Options) -> Result<Self, InvalidAuthorities> {
        let limits = options.limits;
        let bundle = options.ca_bundle.as_deref();
        let eighth = limits.memory / 8;
        Ok(Self {
            http: Http::new(options.plain_http, bundle, limits.clone())?,
            directory: options.directory.map(Directory::new),
            believed: options.believed,
            arch: options.arch,
            reads: Reads::new(limits.clone()),
            label_reads: Reads::new(limits.clone()),
            digest_reads: Reads::new(limits.clone()),
            pull_secrets: InUse::default(),
            resolved: Memory::new(eighth),
            finding: Flights::new(),
            contents: Memory::new(eighth * 3),
            reading: Flights::new(),
            labels: Memory::new(eighth),
            labelling: Flights::new(),
            releases: Memory::new(eighth * 3),
            limits,
        })
    }

    pub(super) fn held(&self) -> Held {
        let all = [
            self.resolved.held(),
            self.contents.held(),
            self.labels.held(),
            self.releases.held(),
        ];
        Held {
            bytes: all.iter().map(|held| held.bytes).sum(),
            entries: all.iter().map(|held| held.entries).sum(),
        }
    }

    /// Where an image is, as far as that is still valid.
    pub(super) fn fresh(&self, query: &Query) -> Option<Resolved> {
        self.resolved.recall(query, self.believed)
    }

    /// Where an image was; or, of one that is named by its digest and was read before, where it says that it is.
    pub(super) fn last_known(&self, query: &Query) -> Option<Resolved> {
        if let Some(resolved) = self.resolved.stale(query) {
            return Some(resolved);
        }
        let place = query.places.last()?;
        let digest = place.digest()?.clone();
        let known = self.contents.stale(&digest).is_some() || self.stored(&digest).is_some();
        known.then(|| Resolved {
            place: place.clone(),
            digest,
        })
    }

    fn stored(&self, digest: &Digest) -> Option<Raw> {
        self.directory.as_ref()?.load(digest)
    }

    /// What was read of an image, from memory or from the directory.
    pub(super) fn stored_contents(
        &self,
        digest: &Digest,
        owner: &Arc<str>,
    ) -> Option<Arc<Contents>> {
        if let Some(contents) = self.contents.stale(digest) {
            return Some(contents);
        }
        let contents = self.stored(digest)?.parse(digest.as_str()).ok()?;
        Some(self.remember(digest, contents, owner))
    }

    fn remember(&self, digest: &Digest, contents: Contents, owner: &Arc<str>) -> Arc<Contents> {
        let (bytes, contents) = (contents.bytes, Arc::new(contents));
        self.contents
            .remember(digest.clone(), contents.clone(), bytes, owner);
        contents
    }

    /// The release as a caller sees it.
    pub(super) fn release(
        &self,
        view: View,
        contents: &Contents,
        owner: &Arc<str>,
    ) -> Arc<Release> {
        if let Some(release) = self.releases.stale(&view) {
            return release;
        }
        let release = Arc::new(view.of(contents));
        self.releases
            .remember(view, release.clone(), contents.bytes, owner);
        release
    }

    /// Where an image is, and that these credentials may read it.
    pub(super) async fn find(
        self: &Arc<Self>,
        query: Query,
        pull_secret: &PullSecret,
        owner: &Arc<str>,
    ) -> Result<Resolved, Error> {
        if let Some(resolved) = self.fresh(&query) {
            return Ok(resolved);
        }
        let flight = self.finding.join(query.clone(), || {
            let (this, query) = (self.clone(), query.clone());
            let (pull_secret, owner) = (pull_secret.clone(), owner.clone());
            async move {
                let last = query.places.last().cloned();
                let look = this.look(&query.places, &pull_secret);
                let resolved = this.in_time(last.as_ref(), look).await?;
                let bytes = query.bytes();
                this.resolved
                    .remember(query, resolved.clone(), bytes, &owner);
                Ok(resolved)
            }
        });
        match flight.await {
            Err(error) if error.is_transient() => {
                let resolved = self.last_known(&query).ok_or(error)?;
                tracing::warn!(place = %resolved.place, "Registry does not respond: using its last response");
                Ok(resolved)
            }
            resolved => resolved,
        }
    }

    /// The first place that has the image. If none has it, the error is that of the place which the image names.
    async fn look(
        &self,
        places: &[Reference],
        pull_secret: &PullSecret,
    ) -> Result<Resolved, Error> {
        let mut last = None;
        for place in places {
            let session = Session::new(&self.http, place.clone(), pull_secret);
            match session.digest().await {
                Ok(digest) => {
                    let place = place.clone();
                    return Ok(Resolved { place, digest });
                }
                Err(error) => last = Some(error),
            }
        }
        Err(last.expect("invariant: an image is at least where it says"))
    }

    pub(super) async fn contents(
        self: &Arc<Self>,
        resolved: &Resolved,
        pull_secret: &PullSecret,
        owner: &Arc<str>,
    ) -> Result<Arc<Contents>, Error> {
        if let Some(contents) = self.stored_contents(&resolved.digest, owner) {
            return Ok(contents);
        }
        let place = resolved.place.with_digest(resolved.digest.clone());
        let key = (place.clone(), pull_secret.fingerprint(&place));
        let flight = self.reading.join(key, || {
            let (this, digest) = (self.clone(), resolved.digest.clone());
            let (pull_secret, owner) = (pull_secret.clone(), owner.clone());
            async move {
                let raw = this
                    .in_time(Some(&place), this.raw(&place, &pull_secret))
                    .await?;
                this.store(&digest, &raw);
                let contents = raw.parse(&place.to_string())?;
                Ok(this.remember(&digest, contents, &owner))
            }
        });
        flight.await
    }

    async fn raw(&self, place: &Reference, pull_secret: &PullSecret) -> Result<Raw, Error> {
        let session = Session::new(&self.http, place.clone(), pull_secret);
        let image = session.image(self.arch).await?;
        let files = session.files(&image.manifest, &FILES).await?;
        Raw::of(&place.to_string(), image.architectures, image.labels, files)
    }

    fn store(&self, digest: &Digest, raw: &Raw) {
        let stored = self.directory.as_ref().map(|it| it.store(digest, raw));
        if let Some(Err(error)) = stored {
            tracing::warn!(%error, "Failed to store a release: it will be read again after the next start");
        }
    }

    pub(super) async fn labels(
        self: &Arc<Self>,
        resolved: Resolved,
        pull_secret: &PullSecret,
        owner: &Arc<str>,
    ) -> Result<Arc<Labels>, Error> {
        if let Some(labels) = self.labels.stale(&resolved.digest) {
            return Ok(labels);
        }
        let place = resolved.place.with_digest(resolved.digest.clone());
        let key = (place.clone(), pull_secret.fingerprint(&place));
        let flight = self.labelling.join(key, || {
            let (this, digest) = (self.clone(), resolved.digest);
            let (pull_secret, owner) = (pull_secret.clone(), owner.clone());
            async move {
                let session = Session::new(&this.http, place.clone(), &pull_secret);
                let image = this.in_time(Some(&place), session.image(this.arch)).await?;
                let sizes = image
                    .labels
                    .iter()
                    .map(|(key, value)| key.len() + value.len() + 64);
                let bytes = sizes.sum();
                let labels = Arc::new(image.labels);
                this.labels.remember(digest, labels.clone(), bytes, &owner);
                Ok(labels)
            }
        });
        flight.await
    }

    /// Bounds all that one read does.
    async fn in_time<T>(
        &self,
        place: Option<&Reference>,
        read: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let limit = self.limits.read;
        let read = timeout(limit, read).await;
        read.unwrap_or_else(|_| {
            let host = place.map_or("", Reference::host);
            let name = place.map(ToString::to_string).unwrap_or_default();
            let detail = slow(host, &Broken::Read(limit));
            Err(Error::new(name, Reason::TooSlow, detail))
        })
    }
}

// === impl Query ===

impl Query {
    /// What it takes in memory, as a key and with its response.
    fn bytes(&self) -> usize {
        let places = self
            .places
            .iter()
            .map(|place| place.to_string().len() + 128);
        places.sum::<usize>() + 512
    }
}
