//! Files of images: which layers to look at, and what is known of them.

use std::io::{self, Read};

use api::hypershift::v1beta1::node_pool::Arch;
use tempfile::TempDir;

use super::{Resolved, Source};
use crate::error::{Error, Reason};
use crate::extract::{self, Extracted, Found, Links, Merge, Pattern, Refused, Store};
use crate::pull_secret::PullSecret;
use crate::reference::Reference;
use crate::registry::{Layer, Session};
use crate::releases::Releases;

/// How often links of an image may lead to files that have to be read, too.
const MOST_ROUNDS: usize = 4;

// === impl Releases ===

impl Releases {
    /// Extracts the files that match any of the patterns from any image, to a directory on disk.
    ///
    /// A layer is downloaded once for each pattern. Whether the pull secret may read the image is checked as often as for
    /// releases. What the image does not have is not an error: see [`Extracted::contains`]. While the registry does not
    /// deliver, an image that is named by its digest is what was extracted of it before.
    pub async fn extract(
        &self,
        image: &str,
        pull_secret: &PullSecret,
        wanted: &[Pattern],
        store: &Store,
    ) -> Result<Extracted, Error> {
        let query = self.query(image, pull_secret)?;
        let named = query.places.last().cloned();
        let resolved = match self.source.find(query, pull_secret, &self.owner()).await {
            Err(error) if error.is_transient() => named
                .and_then(|place| self.source.extracted(place, store))
                .ok_or(error),
            found => found,
        };
        let resolved = resolved.map_err(|error| error.about(image))?;
        let place = resolved.place.with_digest(resolved.digest);
        let read = self.source.extract(&place, pull_secret, wanted, store);
        let read = self.source.in_time(Some(&place), read).await;
        read.map_err(|error| error.about(image))
    }
}

// === impl Source ===

impl Source {
    /// Where an image is of which files were extracted before, if it is named by its digest.
    fn extracted(&self, place: Reference, store: &Store) -> Option<Resolved> {
        let digest = place.digest()?.clone();
        store.known::<Vec<Layer>>(&digest, self.arch_name())?;
        tracing::warn!(%place, "Registry does not respond: using files that were extracted before");
        Some(Resolved { place, digest })
    }

    fn arch_name(&self) -> &'static str {
        match self.arch {
            Arch::Amd64 => "amd64",
            Arch::Arm64 => "arm64",
            Arch::Ppc64le => "ppc64le",
            Arch::S390x => "s390x",
        }
    }

    async fn extract(
        &self,
        place: &Reference,
        pull_secret: &PullSecret,
        wanted: &[Pattern],
        store: &Store,
    ) -> Result<Extracted, Error> {
        let session = Session::new(&self.http, place.clone(), pull_secret);
        let layers = self.layers(place, &session, store).await?;
        let mut wanted = wanted.to_vec();
        for _ in 0..MOST_ROUNDS {
            let merge = merge(place, &session, &layers, &wanted, store).await?;
            match merge.follow(&wanted) {
                Links::Followed(files) => return Ok(Extracted::new(store.clone(), files)),
                Links::Open(targets) => wanted.extend(targets),
            }
        }
        let detail = "its files are links that lead too far";
        Err(Error::new(place.to_string(), Reason::Corrupt, detail))
    }

    async fn layers(
        &self,
        place: &Reference,
        session: &Session<'_>,
        store: &Store,
    ) -> Result<Vec<Layer>, Error> {
        let arch = self.arch_name();
        let known = place.digest().and_then(|digest| store.known(digest, arch));
        if let Some(layers) = known {
            return Ok(layers);
        }
        let layers = session.layers(self.arch).await?;
        if let Some(digest) = place.digest() {
            let kept = store.know(digest, arch, &layers);
            kept.map_err(|error| disk(place, Refused::Disk(error)))?;
        }
        Ok(layers)
    }
}

/// Reads layers from the top down until all is decided.
async fn merge(
    place: &Reference,
    session: &Session<'_>,
    layers: &[Layer],
    wanted: &[Pattern],
    store: &Store,
) -> Result<Merge, Error> {
    let mut merge = Merge::default();
    for layer in layers.iter().rev() {
        let open = wanted.iter().filter(|pattern| !merge.is_decided(pattern));
        let open: Vec<Pattern> = open.cloned().collect();
        if open.is_empty() {
            break;
        }
        merge.add(found(place, session, layer, &open, store).await?);
    }
    Ok(merge)
}

/// What a layer has: as it is known, or by downloading it.
async fn found(
    place: &Reference,
    session: &Session<'_>,
    layer: &Layer,
    wanted: &[Pattern],
    store: &Store,
) -> Result<Found, Error> {
    let corrupt = || {
        let detail = "the digest of a layer is not a SHA-256 digest";
        Error::new(place.to_string(), Reason::Corrupt, detail)
    };
    let digest = layer.digest().ok_or_else(corrupt)?;
    let (patterns, disk_store, key) = (wanted.to_vec(), store.clone(), digest.clone());
    let look =
        move || -> io::Result<(Found, Vec<Pattern>)> { Ok(disk_store.found(&key, &patterns)) };
    let (mut known, unknown) = on_disk(place, look).await?;
    if unknown.is_empty() {
        return Ok(known);
    }
    let (patterns, disk_store) = (unknown.clone(), store.clone());
    let unpack = move |reader: &mut dyn Read| -> Result<(Found, TempDir), Refused> {
        let staging = disk_store.staging().map_err(Refused::Disk)?;
        let caps = disk_store.caps();
        let found = extract::unpack(reader, &patterns, caps, staging.path())?;
        Ok((found, staging))
    };
    let unpacked = session.unpack(layer, unpack).await?;
    let (found, staging) = unpacked.map_err(|refused| disk(place, refused))?;
    let disk_store = store.clone();
    let keep = move || -> io::Result<Found> {
        disk_store.keep(&digest, &unknown, &found, staging.path())?;
        Ok(found)
    };
    known.join(on_disk(place, keep).await?);
    Ok(known)
}

/// Does what reads or writes many files, on a thread that may block.
async fn on_disk<T: Send + 'static>(
    place: &Reference,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, Error> {
    let done = match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(io::Error::other(error)),
    };
    done.map_err(|error| disk(place, Refused::Disk(error)))
}

fn disk(place: &Reference, refused: Refused) -> Error {
    let detail = refused.to_string();
    Error::new(place.to_string(), refused.reason(), detail).caused_by(refused)
}
