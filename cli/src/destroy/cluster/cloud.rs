//! What a cluster has in a cloud, which is destroyed after it.

use serde_json::Value;

use super::aws::{self, AwsArgs};
use super::azure::{self, AzureArgs};
use super::gcp::{self, GcpArgs};
use super::power_vs::{self, PowerVsArgs};
use crate::infra::aws::SecretValues;
use crate::install::display::Display;

/// The flags of a cloud.
#[derive(Debug, Clone, Copy)]
pub(super) enum CloudArgs<'a> {
    /// With the Secret that has credentials, if one is named.
    Aws(&'a AwsArgs, Option<&'a SecretValues>),
    Azure(&'a AzureArgs),
    Gcp(&'a GcpArgs),
    PowerVs(&'a PowerVsArgs),
}

/// What is destroyed.
#[derive(Debug)]
pub(super) enum Cloud {
    Aws(Box<aws::Cloud>),
    Azure(Box<azure::Cloud>),
    Gcp(Box<gcp::Cloud>),
    PowerVs(Box<power_vs::Cloud>),
}

// === impl CloudArgs ===

impl CloudArgs<'_> {
    /// What is destroyed of an infrastructure. `spec` of the HostedCluster is preferred to flags.
    pub(super) fn cloud(
        self,
        infra_id: &str,
        name: &str,
        spec: &Value,
    ) -> anyhow::Result<Option<Cloud>> {
        Ok(match self {
            Self::Aws(args, secret) => {
                let cloud = args.cloud(infra_id, name, spec, secret)?;
                cloud.map(|cloud| Cloud::Aws(Box::new(cloud)))
            }
            Self::Azure(args) => {
                let cloud = args.cloud(infra_id, name, spec)?;
                cloud.map(|cloud| Cloud::Azure(Box::new(cloud)))
            }
            Self::Gcp(args) => {
                let cloud = args.cloud(infra_id, spec)?;
                cloud.map(|cloud| Cloud::Gcp(Box::new(cloud)))
            }
            Self::PowerVs(args) => {
                let cloud = args.cloud(infra_id, name, spec)?;
                cloud.map(|cloud| Cloud::PowerVs(Box::new(cloud)))
            }
        })
    }
}

// === impl Cloud ===

impl Cloud {
    /// Destroys it.
    pub(super) async fn destroy(&self, display: &Display) -> anyhow::Result<()> {
        match self {
            Self::Aws(cloud) => Box::pin(cloud.destroy(display)).await,
            Self::Azure(cloud) => Box::pin(cloud.destroy(display)).await,
            Self::Gcp(cloud) => Box::pin(cloud.destroy(display)).await,
            Self::PowerVs(cloud) => Box::pin(cloud.destroy(display)).await,
        }
    }

    /// Says what would be destroyed.
    pub(super) async fn report(&self, display: &Display) -> anyhow::Result<()> {
        match self {
            Self::Aws(cloud) => Box::pin(cloud.report(display)).await,
            Self::Azure(cloud) => Box::pin(cloud.report(display)).await,
            Self::Gcp(cloud) => Box::pin(cloud.report(display)).await,
            Self::PowerVs(cloud) => Box::pin(cloud.report(display)).await,
        }
    }
}
