//! What platforms destroy in their clouds beside the cluster.

use serde_json::Value;

use super::{aws, gcp};
use crate::install::display::Display;

/// The flags of a platform with infrastructure that `create cluster` makes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Infrastructure<'a> {
    /// Network and IAM roles.
    Aws(&'a aws::AwsArgs),
    /// Network and service accounts.
    Gcp(&'a gcp::GcpArgs),
}

/// What is destroyed.
#[derive(Debug)]
pub(super) enum Cloud {
    Aws(Box<aws::Cloud>),
    Gcp(Box<gcp::Cloud>),
}

// === impl Infrastructure ===

impl Infrastructure<'_> {
    /// What is destroyed of an infrastructure, if anything is. `spec` of the HostedCluster is preferred to flags.
    pub(super) fn cloud(
        self,
        infra_id: &str,
        name: &str,
        spec: &Value,
    ) -> anyhow::Result<Option<Cloud>> {
        Ok(match self {
            Self::Aws(args) => args
                .cloud(infra_id, name, spec)?
                .map(|it| Cloud::Aws(Box::new(it))),
            Self::Gcp(args) => args
                .cloud(infra_id, spec)?
                .map(|it| Cloud::Gcp(Box::new(it))),
        })
    }
}

// === impl Cloud ===

impl Cloud {
    pub(super) async fn destroy(&self, display: &Display) -> anyhow::Result<()> {
        match self {
            Self::Aws(cloud) => Box::pin(cloud.destroy(display)).await,
            Self::Gcp(cloud) => Box::pin(cloud.destroy(display)).await,
        }
    }

    /// Says what would be destroyed.
    pub(super) async fn report(&self, display: &Display) -> anyhow::Result<()> {
        match self {
            Self::Aws(cloud) => Box::pin(cloud.report(display)).await,
            Self::Gcp(cloud) => Box::pin(cloud.report(display)).await,
        }
    }
}
