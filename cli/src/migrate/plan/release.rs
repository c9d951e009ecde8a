//! Whether the release of a hosted cluster supports private types, by the operator's rules.

use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use payload::{Compatibility, OperatorImages, PullSecret, Releases, pull_secret};
use support::error::chain;

use super::given::Given;

/// Checks releases as the operator does when it begins a migration.
pub(super) struct ReleaseCheck {
    client: Client,
    images: OperatorImages,
    releases: Releases,
}

// === impl ReleaseCheck ===

impl ReleaseCheck {
    /// Fails where an operator with these settings would not start.
    pub(super) fn new(client: Client, given: &Given) -> anyhow::Result<Self> {
        Ok(Self {
            client,
            images: given.images()?,
            releases: given.releases()?,
        })
    }

    /// Checks the release of one cluster.
    pub(super) async fn check(&self, cluster: &HostedCluster) -> Compatibility {
        match self.pull_secret(cluster).await {
            Ok(pull_secret) => {
                Compatibility::check(cluster, &self.images, &self.releases, &pull_secret).await
            }
            Err(compatibility) => compatibility,
        }
    }

    async fn pull_secret(&self, cluster: &HostedCluster) -> Result<PullSecret, Compatibility> {
        let namespace = cluster.metadata.namespace.as_deref().unwrap_or_default();
        let name = &cluster.spec.pull_secret.name;
        let what = format!("the pull secret {namespace}/{name} (spec.pullSecret)");
        let api: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        let secret = api.get_opt(name).await.map_err(|error| {
            Compatibility::Unknown(format!("{what} cannot be read: {}", chain(&error)))
        })?;
        let data = secret.and_then(|secret| secret.data).unwrap_or_default();
        let json = data.get(pull_secret::KEY).ok_or_else(|| {
            let key = pull_secret::KEY;
            Compatibility::Incompatible(format!(
                "{what} does not exist, or has no {key}: create it"
            ))
        })?;
        PullSecret::parse(&json.0)
            .map_err(|error| Compatibility::Incompatible(format!("{what} is invalid: {error}")))
    }
}
