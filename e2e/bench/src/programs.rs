//! The programs of a run, built or fetched before anything is measured.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Result;

use super::nginx;
use testbed::binaries::{Binaries, Binary};
use testbed::cargo::{Linking, Profile, Program};
use testbed::progress::Progress;

/// Where everything is.
#[derive(Debug)]
pub(super) struct Programs {
    /// The fake API server, the relay and the load client.
    pub(super) load: PathBuf,
    /// Our proxy.
    pub(super) proxy: PathBuf,
    /// nginx.
    pub(super) nginx: PathBuf,
    /// kubectl.
    pub(super) kubectl: PathBuf,
    versions: BTreeMap<String, String>,
}

// === impl Programs ===

impl Programs {
    /// The versions of the peers that are not ours.
    pub(super) fn versions(&self) -> BTreeMap<String, String> {
        self.versions.clone()
    }
}

/// Builds ours with optimisations, each package by itself so that it has its own features only, and finds the rest.
pub(super) async fn prepare(progress: &Progress) -> Result<Programs> {
    let proxy = release("capi-proxy", Linking::Static)
        .build(progress)
        .await?;
    let load = release("load", Linking::Dynamic).build(progress).await?;
    let kubectl = Binaries::ensure(&[Binary::Kubectl], progress)
        .await?
        .path(Binary::Kubectl)?
        .to_owned();
    let nginx = nginx::find(progress).await?;
    let versions = BTreeMap::from([
        ("kubectl".to_owned(), Binary::Kubectl.version()?),
        ("nginx".to_owned(), nginx::version(&nginx).await?),
    ]);
    Ok(Programs {
        load,
        proxy,
        nginx,
        kubectl,
        versions,
    })
}

/// A package's program of the same name, as it ships.
fn release(package: &'static str, linking: Linking) -> Program {
    Program {
        package,
        name: package,
        profile: Profile::Release,
        linking,
    }
}
