//! Clusters whose user brings machines: they start with the user data of their pool, and nobody else knows of them.

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Cluster;
use crate::hosted::SECRETS;
use crate::hosts::Hosts;

/// Its flags. Everything is published on ports of the management cluster's nodes.
pub(super) fn flags(cluster: &Cluster<'_>) -> Vec<String> {
    let node = cluster.ground().testbed.namespaces().subnets().node(1);
    vec![
        format!("--external-api-server-address={node}"),
        format!("--infra-id={}", cluster.infra()),
        "--base-domain=testbed".to_owned(),
    ]
}

// === impl Cluster ===

impl Cluster<'_> {
    /// Starts a host by hand, with the user data of its pool.
    pub async fn brings(&self, hosts: &Hosts, name: &str) -> Result<()> {
        let user_data = self.user_data().await?;
        hosts.start(name, &self.namespace(), user_data)
    }

    /// The user data of its pool, of which there may be only one.
    async fn user_data(&self) -> Result<Vec<u8>> {
        let all = SECRETS.within(&self.namespace());
        let prefix = format!("user-data-{}-", self.pool());
        let found = self
            .stage("there are user data for machines", async || {
                let mut secrets = self.ground().testbed.admin.list(&all).await?;
                secrets.retain(|secret| {
                    let name = secret["metadata"]["name"].as_str();
                    name.is_some_and(|name| name.starts_with(&prefix))
                });
                ensure!(secrets.len() == 1, "there are {}", secrets.len());
                Ok(secrets.remove(0))
            })
            .await?;
        let encoded = found["data"]["value"].as_str();
        let decoded = STANDARD.decode(encoded.context("they are not in their Secret")?);
        decoded.context("they are not in base64")
    }
}
