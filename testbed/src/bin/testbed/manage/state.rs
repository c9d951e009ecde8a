//! What a running testbed writes down about itself, for `status` and `down`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use testbed::work_dir;

/// How to use a testbed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct State {
    /// Its name.
    pub(crate) name: String,
    /// The process that it belongs to.
    pub(crate) pid: u32,
    /// Where its files and logs are.
    pub(crate) directory: PathBuf,
    /// The kubectl that fits.
    pub(crate) kubectl: PathBuf,
    /// What it offers.
    pub(crate) offer: Offer,
}

/// What a testbed offers, by its level.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "level", rename_all = "kebab-case")]
pub(crate) enum Offer {
    /// Cluster API on private types.
    ControlPlane {
        /// Kubeconfig straight to the API server, as administrator.
        direct: PathBuf,
        /// Kubeconfig through a proxy: private types under their standard names.
        standard: PathBuf,
        /// A cluster to apply.
        example: PathBuf,
        /// The clusterctl that fits.
        clusterctl: PathBuf,
    },
    /// Nodes that run pods.
    Node {
        /// The administrator's kubeconfig.
        kubeconfig: PathBuf,
        /// Where images can be pushed, over plain HTTP.
        registry: SocketAddr,
        /// The references of our images.
        images: Vec<String>,
    },
}

// === impl State ===

impl State {
    /// Writes it into the testbed's directory, whole or not at all.
    pub(crate) fn write(&self) -> Result<()> {
        let path = self.directory.join("state.json");
        let unfinished = path.with_extension("new");
        std::fs::write(&unfinished, serde_json::to_vec_pretty(self)?)
            .and_then(|()| std::fs::rename(&unfinished, &path))
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// Reads that of the testbed called `name`.
    pub(crate) fn read(name: &str) -> Result<Self> {
        let path = work_dir::directory_of(name).join("state.json");
        let text =
            std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("cannot parse {}", path.display()))
    }
}

/// The names of the testbeds that run.
pub(crate) fn running() -> Result<Vec<String>> {
    let base = work_dir::base();
    let Ok(entries) = std::fs::read_dir(&base) else {
        return Ok(Vec::new());
    };
    let mut names = Vec::new();
    for entry in entries {
        let path = entry
            .with_context(|| format!("cannot read {}", base.display()))?
            .path();
        if let Some(name) = locked_name(&path)
            && work_dir::is_running(name)?
        {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// The name of the testbed whose lock file this is.
fn locked_name(path: &Path) -> Option<&str> {
    if path.extension()? != "lock" {
        return None;
    }
    path.file_stem()?
        .to_str()
        .filter(|name| *name != work_dir::PROVIDER_LOCK)
}
