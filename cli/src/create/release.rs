//! The release of an image, for checks before anything is created.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use payload::{Options, PullSecret, Release, Releases};

/// How long a registry may take: the check is a help, and the operator checks again.
const PATIENCE: Duration = Duration::from_mins(1);

/// Reads a release. A registry that only the management cluster reaches is an error like any other.
pub(super) async fn read(image: &str, pull_secret: &PullSecret) -> anyhow::Result<Arc<Release>> {
    let releases =
        Releases::new(Options::default()).context("failed to create a client of registries")?;
    let read = tokio::time::timeout(PATIENCE, Box::pin(releases.get(image, pull_secret))).await;
    let read = read.with_context(|| {
        format!(
            "failed to read image {image}: no response within {} s",
            PATIENCE.as_secs()
        )
    })?;
    Ok(read?)
}
