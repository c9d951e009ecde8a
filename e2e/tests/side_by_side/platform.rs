//! The platform's own Cluster API objects, which nobody but the platform may touch.

use anyhow::{Result, ensure};
use e2e::etcd::Stored;
use e2e::hosted::Ground;
use e2e::service_account::ensure_namespace;
use e2e::sides::CRDS;
use serde_json::json;

const NAMESPACE: &str = "platform";

/// Its objects and its kinds, as they are stored.
#[derive(Debug)]
pub(crate) struct Platform(Vec<Stored>);

// === impl Platform ===

impl Platform {
    /// Makes a cluster of the platform's, which it has paused.
    pub(crate) async fn create(ground: &Ground) -> Result<Self> {
        let admin = &ground.testbed.admin;
        ensure_namespace(admin, NAMESPACE).await?;
        let cluster = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "Cluster",
            "metadata": { "namespace": NAMESPACE, "name": "its-own", "finalizers": ["platform.example.com/kept"] },
            "spec": { "paused": true },
        });
        let machine = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
            "kind": "AWSMachine",
            "metadata": { "namespace": NAMESPACE, "name": "its-own" },
            "spec": { "instanceType": "m5.large" },
        });
        admin.apply(&[cluster, machine]).await?;
        Ok(Self(stored(ground).await?))
    }

    /// Fails if a byte or a revision of it is another one.
    pub(crate) async fn is_untouched(&self, ground: &Ground) -> Result<()> {
        let now = stored(ground).await?;
        let changed: Vec<_> = self
            .0
            .iter()
            .filter(|one| !now.contains(one))
            .map(|one| &one.key)
            .collect();
        ensure!(
            changed.is_empty() && now.len() == self.0.len(),
            "of the platform's {} objects and kinds, there are {}; other than before are {changed:?}",
            self.0.len(),
            now.len()
        );
        Ok(())
    }
}

async fn stored(ground: &Ground) -> Result<Vec<Stored>> {
    let etcd = &ground.testbed.control_plane.etcd;
    let mut all = e2e::sides::world(etcd, api::group::Side::Standard).await?;
    let within = format!("/{NAMESPACE}/");
    all.retain(|one| one.key.starts_with(CRDS) || one.key.contains(&within));
    ensure!(all.len() > 2, "the platform has nothing");
    Ok(all)
}
