//! The layers of an image, for callers that unpack them.

use std::io::Read;

use api::hypershift::v1beta1::node_pool::Arch;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::http::ChannelReader;
use super::manifest::{Descriptor, Manifest};
use super::{AHEAD, LARGEST_LAYER, MOST_LAYERS, Session};
use crate::error::{Error, Reason};
use crate::reference::Digest;

/// A layer of an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Layer {
    /// Its digest.
    digest: String,
    /// Its size as it is downloaded.
    size: u64,
}

// === impl Layer ===

impl Layer {
    fn of(descriptor: &Descriptor) -> Self {
        Self {
            digest: descriptor.digest.to_string(),
            size: descriptor.size,
        }
    }

    /// Its digest; nothing if it was stored and damaged.
    pub(crate) fn digest(&self) -> Option<Digest> {
        self.digest.parse().ok()
    }
}

// === impl Session ===

impl Session<'_> {
    /// The layers of the image from the bottom up; of a list, those of the image for this architecture.
    pub(crate) async fn layers(&self, arch: Arch) -> Result<Vec<Layer>, Error> {
        let (_, manifest) = self.manifest(self.image.identifier()).await?;
        let manifest = match manifest {
            Manifest::Image(manifest) => manifest,
            Manifest::List { manifests } => self.listed(&manifests, arch).await?,
        };
        if manifest.layers.len() > MOST_LAYERS {
            return Err(self.error(Reason::TooLarge, "it has more than 128 layers"));
        }
        Ok(manifest.layers.iter().map(Layer::of).collect())
    }

    /// Downloads a layer and unpacks it at the same time. The result is returned only if the digest of the layer is right.
    pub(crate) async fn unpack<T>(
        &self,
        layer: &Layer,
        unpack: impl Fn(&mut dyn Read) -> T + Clone + Send + 'static,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
    {
        self.with_retries(|| self.unpack_once(layer, unpack.clone()))
            .await
    }

    async fn unpack_once<T>(
        &self,
        layer: &Layer,
        unpack: impl Fn(&mut dyn Read) -> T + Send + 'static,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
    {
        let digest = layer.digest().ok_or_else(|| {
            self.error(
                Reason::Corrupt,
                "the digest of a layer is not a SHA-256 digest",
            )
        })?;
        if layer.size > LARGEST_LAYER {
            return Err(self.error(Reason::TooLarge, "it has a layer of more than 4 GiB"));
        }
        let descriptor = Descriptor {
            digest,
            size: layer.size,
        };
        let _turn = self.http.layers.acquire().await;
        let body = self.get(&format!("blobs/{}", descriptor.digest)).await?;
        let (sender, receiver) = mpsc::channel(AHEAD);
        let unpacking =
            tokio::task::spawn_blocking(move || unpack(&mut ChannelReader::new(receiver)));
        self.download(body.into_body(), &descriptor, sender).await?;
        unpacking.await.map_err(|error| {
            let detail = "unpacking a layer was interrupted";
            self.error(Reason::Unreachable, detail).caused_by(error)
        })
    }
}
