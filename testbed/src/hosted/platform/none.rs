//! Clusters with machines that users provide: they start with the user data of their pool, and no controller knows of them.

use anyhow::{Result, ensure};

use super::Cluster;
use crate::hosted::SECRETS;
use crate::hosts::Hosts;

/// Its flags. Everything is published on ports of the management cluster's nodes.
pub(super) fn flags(cluster: &Cluster<'_>) -> Vec<String> {
    let node = cluster.fixture().testbed.namespaces().subnets().node(1);
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
        let admin = &self.fixture().testbed.admin;
        let name = self
            .stage("there are user data for machines", async || {
                let secrets = admin.list(&all).await?;
                let names = secrets
                    .iter()
                    .filter_map(|it| it["metadata"]["name"].as_str());
                let own: Vec<_> = names.filter(|name| name.starts_with(&prefix)).collect();
                ensure!(own.len() == 1, "there are {}", own.len());
                Ok(own[0].to_owned())
            })
            .await?;
        let path = SECRETS.named(&self.namespace(), &name);
        admin.secret_value(&path, "value").await
    }
}
