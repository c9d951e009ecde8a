//! Releases from registries, each read once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use api::hypershift::v1beta1::node_pool::Arch;

use crate::error::Error;
use crate::mirrors::{Mirrors, Overrides};
use crate::pull_secret::PullSecret;
use crate::release::Release;

/// How releases are read.
#[derive(Debug, Clone)]
pub struct Options {
    /// Registries that are spoken to without TLS, by host and port.
    pub plain_http: BTreeSet<String>,
    /// More authorities to trust, in PEM.
    pub ca_bundle: Option<Vec<u8>>,
    /// Where releases that were read are kept for the next start.
    pub directory: Option<PathBuf>,
    /// How long it is believed which image a tag names, and that a pull secret may pull it.
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
    options: Arc<Options>,
}

impl Releases {
    /// Reads releases so.
    pub fn new(options: Options) -> Result<Self, Error> {
        Ok(Self {
            options: Arc::new(options),
        })
    }

    /// The same, with these mirrors beside those of the options: what one cluster brings along.
    pub fn with_mirrors(&self, _mirrors: &Mirrors) -> Self {
        self.clone()
    }

    /// The same without overrides: what a node sees.
    pub fn for_user(&self) -> Self {
        self.clone()
    }

    /// Reads a release.
    pub async fn get(
        &self,
        _image: &str,
        _pull_secret: &PullSecret,
    ) -> Result<Arc<Release>, Error> {
        todo!()
    }

    /// The labels of any image.
    pub async fn labels(
        &self,
        _image: &str,
        _pull_secret: &PullSecret,
    ) -> Result<Arc<BTreeMap<String, String>>, Error> {
        todo!()
    }
}
