//! An account of a cloud: a fake, and the gate that calls to it pass.

use std::sync::Arc;

use anyhow::Result;
use testbed::calls::CallGate;
use testbed::cloud::{Cloud, CloudRelay, FakeStore};
use testbed::cloud_proxy::CloudProxy;
use testbed::payload::REGION;
use testbed::progress::Progress;
use testbed::work_dir::WorkDir;
use tokio::process::Command;

/// The domain of clusters.
pub(super) const DOMAIN: &str = "example.com";

/// An account.
pub(super) enum Account {
    Aws(Box<Aws>),
    Other(Other),
}

/// moto.
pub(super) struct Aws {
    cloud: Cloud,
    relay: CloudRelay,
    _store: FakeStore,
}

/// A fake in memory.
pub(super) struct Other {
    pub(super) proxy: CloudProxy,
    /// Replaces the cloud with an empty one.
    pub(super) empty: fn(&CloudProxy),
    /// Credentials in the environment.
    pub(super) variables: Vec<(&'static str, String)>,
}

// === impl Aws ===

impl Aws {
    pub(super) async fn start(work_dir: &Arc<WorkDir>, progress: &Progress) -> Result<Self> {
        let store = FakeStore::start(work_dir, progress).await?;
        Ok(Self {
            cloud: Cloud::new(&store.url(), REGION)?,
            relay: CloudRelay::start(&store.url()).await?,
            _store: store,
        })
    }
}

// === impl Account ===

impl Account {
    pub(super) fn calls(&self) -> &CallGate {
        match self {
            Self::Aws(aws) => aws.relay.calls(),
            Self::Other(other) => other.proxy.calls(),
        }
    }

    /// Has a program use it.
    pub(super) fn configure(&self, command: &mut Command) {
        match self {
            Self::Aws(aws) => {
                command
                    .env("AWS_ENDPOINT_URL", aws.relay.url())
                    .env("AWS_ACCESS_KEY_ID", "a")
                    .env("AWS_SECRET_ACCESS_KEY", "s");
            }
            Self::Other(other) => {
                other.proxy.configure(command);
                for (name, value) in &other.variables {
                    command.env(name, value);
                }
            }
        }
    }

    /// Leaves nothing in it but what a cluster needs before its creation: a public zone.
    pub(super) async fn empty(&self) -> Result<()> {
        match self {
            Self::Aws(aws) => {
                aws.cloud.reset().await?;
                aws.cloud.create_public_zone(DOMAIN).await
            }
            Self::Other(other) => {
                (other.empty)(&other.proxy);
                Ok(())
            }
        }
    }

    /// What there is in it, a line for each resource.
    pub(super) async fn contents(&self) -> Result<Vec<String>> {
        match self {
            Self::Aws(aws) => aws.cloud.contents().await,
            Self::Other(other) => Ok(other.proxy.snapshot()),
        }
    }
}
