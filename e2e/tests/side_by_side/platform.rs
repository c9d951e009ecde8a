//! The platform's own Cluster API objects, which only the platform may change.

use anyhow::{Result, ensure};
use serde_json::json;
use testbed::capi_storage::CRDS;
use testbed::etcd::Stored;
use testbed::hosted::Fixture;
use testbed::service_account::ensure_namespace;

const NAMESPACE: &str = "platform";

/// Its objects and its kinds, as they are stored.
#[derive(Debug)]
pub(crate) struct Platform(Vec<Stored>);

// === impl Platform ===

impl Platform {
    /// Makes a cluster of the platform's, which it has paused.
    pub(crate) async fn create(fixture: &Fixture) -> Result<Self> {
        let admin = &fixture.testbed.admin;
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
        Ok(Self(stored(fixture).await?))
    }

    /// Fails if a byte or a revision of it is another one.
    pub(crate) async fn is_untouched(&self, fixture: &Fixture) -> Result<()> {
        let now = stored(fixture).await?;
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

async fn stored(fixture: &Fixture) -> Result<Vec<Stored>> {
    let etcd = &fixture.testbed.control_plane.etcd;
    let mut all = testbed::capi_storage::stored(etcd, api::group::CapiTypes::Standard).await?;
    let within = format!("/{NAMESPACE}/");
    all.retain(|one| one.key.starts_with(CRDS) || one.key.contains(&within));
    ensure!(all.len() > 2, "the platform has nothing");
    Ok(all)
}
