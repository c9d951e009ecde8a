//! Releases from registries, each read once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use api::hypershift::v1beta1::node_pool::Arch;
use sha2::{Digest as _, Sha256};

use crate::cache::Cache;
use crate::contents::{Contents, FILES, Kept, Raw};
use crate::error::{Error, Reason};
use crate::mirrors::{Mirrors, Overrides};
use crate::pull_secret::PullSecret;
use crate::reference::{Digest, Reference};
use crate::registry::{Http, InvalidAuthorities, Session};
use crate::release::Release;

/// Releases that are kept in memory.
const MOST_RELEASES: usize = 64;
/// Images whose labels are kept.
const MOST_LABELS: usize = 256;
/// Answers of registries to who may read what.
const MOST_ANSWERS: usize = 10_000;
/// For things that are named by their digest, and so never change.
const FOR_EVER: Duration = Duration::MAX;

type Labels = BTreeMap<String, String>;

/// How releases are read.
#[derive(Debug, Clone)]
pub struct Options {
    /// Registries that are spoken to without TLS, by host and port.
    pub plain_http: BTreeSet<String>,
    /// More authorities to trust, in PEM.
    pub ca_bundle: Option<Vec<u8>>,
    /// Where releases that were read are kept for the next start.
    pub directory: Option<PathBuf>,
    /// How long it is believed which image a tag names, and that a pull secret may read it.
    pub believed: Duration,
    /// Mirrors of every cluster's images.
    pub mirrors: Mirrors,
    /// Registries that are replaced.
    pub overrides: Overrides,
    /// Which image of several architectures' is read.
    pub arch: Arch,
}

/// Reads releases. Cheap to clone: all clones share what they have read.
#[derive(Debug, Clone)]
pub struct Releases {
    shared: Arc<Shared>,
    mirrors: Arc<Mirrors>,
    overrides: Arc<Overrides>,
}

struct Shared {
    http: Http,
    kept: Option<Kept>,
    believed: Duration,
    arch: Arch,
    answers: Cache<Asked, Answer>,
    contents: Cache<Digest, Arc<Contents>>,
    labels: Cache<Digest, Arc<Labels>>,
    releases: Cache<View, Arc<Release>>,
}

/// A question to registries, with who asks as a hash.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Asked {
    places: Vec<Reference>,
    who: [u8; 32],
}

/// Where an image is.
#[derive(Debug, Clone)]
struct Answer {
    place: Reference,
    digest: Digest,
}

/// A release as somebody sees it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct View {
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
        }
    }
}

// === impl Releases ===

impl Releases {
    /// Reads releases so; nothing is asked yet.
    pub fn new(options: Options) -> Result<Self, InvalidAuthorities> {
        let http = Http::new(options.plain_http, options.ca_bundle.as_deref())?;
        Ok(Self {
            shared: Arc::new(Shared {
                http,
                kept: options.directory.map(Kept::new),
                believed: options.believed,
                arch: options.arch,
                answers: Cache::new(MOST_ANSWERS),
                contents: Cache::new(MOST_RELEASES),
                labels: Cache::new(MOST_LABELS),
                releases: Cache::new(MOST_RELEASES),
            }),
            mirrors: Arc::new(options.mirrors),
            overrides: Arc::new(options.overrides),
        })
    }

    /// The same, which tries these mirrors first: those that one cluster brings along.
    #[must_use]
    pub fn with_mirrors(&self, mirrors: &Mirrors) -> Self {
        Self {
            mirrors: Arc::new(mirrors.clone().then(&self.mirrors)),
            ..self.clone()
        }
    }

    /// The same without overrides: releases as nodes see them.
    #[must_use]
    pub fn for_user(&self) -> Self {
        Self {
            overrides: Arc::default(),
            ..self.clone()
        }
    }

    /// Reads a release. The layers of an image are read once, whoever asks; that one may read it, everybody has to show.
    pub async fn get(&self, image: &str, pull_secret: &PullSecret) -> Result<Arc<Release>, Error> {
        let answer = self.find(image, pull_secret).await?;
        let contents = self.shared.contents(&answer, pull_secret).await;
        let contents = contents.map_err(|error| error.about(image))?;
        let view = View {
            image: image.to_owned(),
            mirror: self.mirror(image, &answer),
            digest: answer.digest,
            overrides: self.overrides.clone(),
        };
        let release = self.shared.releases.get(view.clone(), FOR_EVER, || {
            std::future::ready(Ok(Arc::new(view.of(&contents))))
        });
        release.await
    }

    /// The labels of any image.
    pub async fn labels(
        &self,
        image: &str,
        pull_secret: &PullSecret,
    ) -> Result<Arc<BTreeMap<String, String>>, Error> {
        let answer = self.find(image, pull_secret).await?;
        let labels = self.shared.labels(answer, pull_secret.clone()).await;
        labels.map_err(|error| error.about(image))
    }

    /// Where an image is, and that it may be read.
    async fn find(&self, image: &str, pull_secret: &PullSecret) -> Result<Answer, Error> {
        let places = self.places(image)?;
        let asked = Asked {
            who: who(&places, pull_secret),
            places: places.clone(),
        };
        let (shared, secret) = (self.shared.clone(), pull_secret.clone());
        let answers = &self.shared.answers;
        let answer = answers.get(asked.clone(), self.shared.believed, || async move {
            shared.look(&places, &secret).await
        });
        match answer.await {
            Err(error) if error.is_transient() => {
                let last_known = answers.stale(&asked);
                let last_known = last_known.or_else(|| self.shared.has(&asked.places));
                let answer = last_known.ok_or_else(|| error.about(image))?;
                tracing::warn!(image, "the registry is away: what it said before is taken");
                Ok(answer)
            }
            answer => answer.map_err(|error| error.about(image)),
        }
    }

    /// Where an image may be: its mirrors, then the place that it names, each with its registry replaced.
    fn places(&self, image: &str) -> Result<Vec<Reference>, Error> {
        let named = self.overrides.apply(image);
        let named = named.parse::<Reference>().map_err(|error| {
            Error::new(image, Reason::InvalidReference, error.to_string()).caused_by(error)
        })?;
        let mirrors = self.mirrors.of_image(image);
        // A mirror that makes no sense must not keep anybody from the image itself.
        let mirrors = mirrors
            .iter()
            .map(|mirror| self.overrides.apply(mirror).parse());
        let mut places: Vec<Reference> = mirrors.flatten().collect();
        places.retain(|place| *place != named);
        places.push(named);
        Ok(places)
    }

    fn mirror(&self, image: &str, answer: &Answer) -> Option<String> {
        let place = answer.place.to_string();
        (place != self.overrides.apply(image)).then_some(place)
    }
}

/// Who asks: a hash of all credentials that the places are asked with.
fn who(places: &[Reference], pull_secret: &PullSecret) -> [u8; 32] {
    let mut hash = Sha256::new();
    for place in places {
        hash.update(pull_secret.fingerprint(place));
    }
    hash.finalize().into()
}

// === impl Shared ===

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("Shared");
        debug.field("http", &self.http).finish_non_exhaustive()
    }
}

impl Shared {
    /// The first place that has the image. If none has it, the one that the image names says why.
    async fn look(&self, places: &[Reference], pull_secret: &PullSecret) -> Result<Answer, Error> {
        let mut last = None;
        for place in places {
            let session = Session::new(&self.http, place.clone(), pull_secret);
            match session.digest().await {
                Ok(digest) => {
                    let place = place.clone();
                    return Ok(Answer { place, digest });
                }
                Err(error) => last = Some(error),
            }
        }
        Err(last.expect("invariant: an image is at least where it says"))
    }

    /// What needs no registry: an image that is named by its digest, and was read before.
    fn has(&self, places: &[Reference]) -> Option<Answer> {
        let place = places.last()?;
        let digest = place.digest()?.clone();
        let in_memory = self.contents.stale(&digest).is_some();
        let on_disk = || self.kept.as_ref().and_then(|kept| kept.load(&digest));
        let known = in_memory || on_disk().is_some();
        known.then(|| Answer {
            place: place.clone(),
            digest,
        })
    }

    async fn contents(
        self: &Arc<Self>,
        answer: &Answer,
        pull_secret: &PullSecret,
    ) -> Result<Arc<Contents>, Error> {
        let (shared, secret, answer) = (self.clone(), pull_secret.clone(), answer.clone());
        let contents = self
            .contents
            .get(answer.digest.clone(), FOR_EVER, || async move {
                let image = answer.place.to_string();
                let raw = shared.raw(answer, &secret).await?;
                raw.parse(&image).map(Arc::new)
            });
        contents.await
    }

    async fn raw(&self, answer: Answer, pull_secret: &PullSecret) -> Result<Raw, Error> {
        let kept = self.kept.clone();
        if let Some(raw) = kept.as_ref().and_then(|kept| kept.load(&answer.digest)) {
            return Ok(raw);
        }
        let raw = self.read(&answer, pull_secret).await?;
        if let Some(Err(error)) = kept.map(|kept| kept.store(&answer.digest, &raw)) {
            tracing::warn!(%error, "a release cannot be kept: it will be read again after the next start");
        }
        Ok(raw)
    }

    async fn read(&self, answer: &Answer, pull_secret: &PullSecret) -> Result<Raw, Error> {
        let place = answer.place.with_digest(answer.digest.clone());
        let name = place.to_string();
        let session = Session::new(&self.http, place, pull_secret);
        let image = session.image(self.arch).await?;
        let files = session.files(&image.manifest, &FILES).await?;
        Raw::of(&name, image.architectures, image.labels, files)
    }

    async fn labels(
        self: &Arc<Self>,
        answer: Answer,
        pull_secret: PullSecret,
    ) -> Result<Arc<Labels>, Error> {
        let shared = self.clone();
        let labels = self
            .labels
            .get(answer.digest.clone(), FOR_EVER, || async move {
                let place = answer.place.with_digest(answer.digest);
                let session = Session::new(&shared.http, place, &pull_secret);
                let image = session.image(shared.arch).await?;
                Ok(Arc::new(image.labels))
            });
        labels.await
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
