//! The clouds, and the commands that create and destroy the infrastructure of a cluster in each.

mod aws;
mod azure;
mod gcp;
mod power_vs;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use testbed::progress::Progress;
use testbed::work_dir::WorkDir;

use super::account::Account;
use super::hcp::{Files, Step};

/// How many accounts there are side by side. Most of the time of commands is intervals at which they look again; moto takes
/// memory.
const LANES_OF_AWS: usize = 3;
const LANES: usize = 8;

/// A cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Platform {
    Aws,
    Azure,
    Gcp,
    PowerVs,
}

// === impl Platform ===

impl Platform {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Aws => "aws",
            Self::Azure => "azure",
            Self::Gcp => "gcp",
            Self::PowerVs => "powervs",
        }
    }

    pub(super) fn lanes(self) -> usize {
        match self {
            Self::Aws => LANES_OF_AWS,
            Self::Azure | Self::Gcp | Self::PowerVs => LANES,
        }
    }

    /// Starts a fake, and writes the files that commands read.
    pub(super) async fn start(
        self,
        work_dir: &Arc<WorkDir>,
        files: &Files,
        progress: &Progress,
    ) -> Result<Account> {
        match self {
            Self::Aws => aws::start(work_dir, files, progress).await,
            Self::Azure => azure::start(work_dir, files).await,
            Self::Gcp => gcp::start(work_dir, files).await,
            Self::PowerVs => power_vs::start(work_dir).await,
        }
    }

    /// The commands of a creation, in their order.
    pub(super) fn create(self) -> &'static [Step] {
        match self {
            Self::Aws => &aws::CREATE,
            Self::Azure => &azure::CREATE,
            Self::Gcp => &gcp::CREATE,
            Self::PowerVs => &power_vs::CREATE,
        }
    }

    /// The commands of a destruction, in their order.
    pub(super) fn destroy(self) -> &'static [Step] {
        match self {
            Self::Aws => &aws::DESTROY,
            Self::Azure => &azure::DESTROY,
            Self::Gcp => &gcp::DESTROY,
            Self::PowerVs => &power_vs::DESTROY,
        }
    }
}

/// The words of a command: those of the text, and flags with paths.
fn words(text: &str, paths: &[(&str, PathBuf)]) -> Vec<String> {
    let flags = paths
        .iter()
        .map(|(flag, path)| format!("{flag}={}", path.display()));
    text.split_whitespace()
        .map(str::to_owned)
        .chain(flags)
        .collect()
}
